"""The section `endpoints`."""
