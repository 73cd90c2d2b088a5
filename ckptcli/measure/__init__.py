"""Timing callables, the machine that it happened on, and the record of it."""

OURS = "ckpt"
"""What `--engine` and records call this program's own engine."""

REPLAY = "replay"
"""What records call the flat programs of its passes, whose rows are another engine's."""
