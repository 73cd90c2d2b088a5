"""Differentiable programs to profile."""
