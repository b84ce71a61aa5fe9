"""Alembic's folder.

A released migration is never edited. The next one is added to `versions` and named in `revision.HEAD`.
"""
