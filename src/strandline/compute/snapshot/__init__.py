"""Facts -> the latest row per key."""
