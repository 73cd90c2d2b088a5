"""One planner a file; `registry` finds them."""
