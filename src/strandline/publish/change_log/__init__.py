"""Change logs: the net changes of a dataset, commit by commit."""
