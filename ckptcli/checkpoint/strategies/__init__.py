"""One strategy a file; `registry` finds them."""
