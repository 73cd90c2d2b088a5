"""Timing callables, the machine that it happened on, and the record of it."""

OURS = "ckpt"
"""What `--engine` and records call this program's own engine."""
