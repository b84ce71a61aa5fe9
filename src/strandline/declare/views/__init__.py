"""The section `views`."""
