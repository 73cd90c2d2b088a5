"""A pass as a flat program: recorded as calls of the namespace, compiled to source, replayed."""
