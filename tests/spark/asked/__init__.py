"""One small table, asked the same of both engines."""
