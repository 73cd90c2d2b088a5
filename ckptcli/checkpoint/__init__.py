"""Which values are held for the backward pass, and how the others are computed again."""
