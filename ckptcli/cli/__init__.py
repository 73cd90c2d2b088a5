"""The command line: one file a command; the only place that composes the parts.

Nothing here imports an array library or rich before a command runs, so that help and completion
are immediate.
"""
