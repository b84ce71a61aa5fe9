"""Jobs: nodes that users write."""
