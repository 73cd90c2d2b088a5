"""Where the value of an option comes from."""

from __future__ import annotations

FLAG, ENVIRONMENT, GRID, FILE, DEFAULT = "flag", "environment", "grid", "file", "default"

NEAREST_FIRST = (FLAG, ENVIRONMENT, GRID, FILE, DEFAULT)
"""The nearest to the command line first; `GRID` is the grid file of a sweep, `FILE` a burn.toml."""
