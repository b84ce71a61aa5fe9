"""Announced blocks -> the canonical chain."""
