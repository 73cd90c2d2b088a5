"""What the figures of a row say, where two of them seem to contradict each other."""

from __future__ import annotations

from ckptcli.report.readings import answer, readings
from tests.records import balanced_record, none_record, run_record

QUIET, DISTURBED = 0.010, 0.030


def told(none_s: list[float], balanced_s: list[float]) -> tuple[str, str]:
    """The answer on `balanced`, and all that is said below the table."""
    record = run_record(none_record(none_s), balanced_record(balanced_s))
    row = record.rows[1]
    return answer(row, record), " ".join(readings(row, record))


def test_a_ratio_that_the_medians_contradict_says_which_of_both_it_is() -> None:
    """A busy machine: but for one round, both are slow together."""
    none_s = [DISTURBED] * 5 + [QUIET] * 4
    balanced_s = [1.1 * DISTURBED] * 4 + [1.1 * QUIET] * 5
    head, below = told(none_s, balanced_s)
    assert "takes 1.10x the time round by round (slower)" in head
    assert "the two medians make 0.37x" in below


def test_a_ratio_that_the_medians_confirm_says_nothing_more() -> None:
    head, below = told([QUIET] * 9, [1.1 * QUIET] * 9)
    assert "takes 1.10x the time (slower)" in head
    assert "medians" not in below
