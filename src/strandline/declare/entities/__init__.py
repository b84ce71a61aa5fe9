"""The section `entities`: things with an id, and the variables that are computed for each of them."""
