"""Proof that a strategy changed nothing: gradients, recomputed values, effects."""
