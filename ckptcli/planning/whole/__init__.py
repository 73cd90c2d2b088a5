"""Whole-graph search with two solvers of others, CP-SAT and HiGHS, which an extra installs."""
