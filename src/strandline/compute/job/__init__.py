"""Users' SQL and Python over the scope that a change touches."""
