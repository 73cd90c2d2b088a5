"""What fits: the ladder of small sizes, the search for the largest, the answer as data."""
