"""The same network natively in PyTorch and JAX, for figures side by side.

Invariant: neither library is imported before an engine of it is asked for.
"""
