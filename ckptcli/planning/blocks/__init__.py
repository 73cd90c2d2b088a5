"""Plans for a network of blocks: which of them to checkpoint so that the peak fits a budget."""
