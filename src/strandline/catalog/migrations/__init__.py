"""Alembic's folder. A released migration is never edited; the next one is added to `versions` and named in `revision.HEAD`."""
