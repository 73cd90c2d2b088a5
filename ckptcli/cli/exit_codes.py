"""What a command ends with beside 0, where no error and no stop decides it."""

FAILED = 1
"""A strategy failed while running; the others are reported."""

FAILED_CONDITION = 3
"""A condition of `--fail-on` holds."""

UNTRUSTWORTHY = 4
"""Under `--strict` a verdict is not clear."""

WRONG = 5
"""Something was computed that is not what it has to be."""
