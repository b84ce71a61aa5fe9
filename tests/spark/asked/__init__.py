"""One small table, and the same questions to both engines."""
