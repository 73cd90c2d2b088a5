"""Timing callables, the machine that it happened on, and the record of it."""
