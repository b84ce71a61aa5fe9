"""Sources: where facts come from."""
