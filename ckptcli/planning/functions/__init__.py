"""Plans for a function that is compiled: which checkpoint with which policy fits a budget."""
