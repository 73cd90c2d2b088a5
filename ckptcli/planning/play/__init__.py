"""The rules of each kind of problem: a schedule in, its cost and peak out. One kind a file.

Invariant: what a plan is said to cost and to take is what playing it gave.
"""
