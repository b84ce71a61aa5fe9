"""Chains, and the datasets that follow them."""
