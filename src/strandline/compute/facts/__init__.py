"""Received rows -> facts and their quarantine."""
