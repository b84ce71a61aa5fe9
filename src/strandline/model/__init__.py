"""What exists: frozen values and their rules.

In: nothing. Out: the terms that every other package uses. Only the standard library is imported. There is no
IO, no clock and no randomness.
"""
