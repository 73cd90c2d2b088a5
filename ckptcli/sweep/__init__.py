"""Many points: which they are, what measures them, where they are kept, and what follows."""
