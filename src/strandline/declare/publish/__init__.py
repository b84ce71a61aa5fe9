"""The section `publish`: datasets that get a change log."""
