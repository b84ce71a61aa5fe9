"""What exists: frozen values and their rules.

Comes in: nothing. Goes out: the words every other package speaks. Standard library only; no IO, no clock, no chance.
"""
