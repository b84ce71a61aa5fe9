"""Entities: variables computed for each id, for the entities that a change or the clock touches."""
