"""The section `triggers`."""
