"""Triggers: the changes of a dataset become events."""
