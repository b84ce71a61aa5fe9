"""Which migration a database is at.

It is separate from `migrate`, so that an up-to-date catalog opens without loading Alembic.
"""

from sqlalchemy import Connection, inspect, text

from strandline.model.errors import OutsideError

HEAD = "0005"
"""The newest migration. A test compares it with the folder."""


def find_revision(connection: Connection) -> str | None:
    """None for an empty database. Refuses one that a newer Strandline has migrated."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision is not None and revision > HEAD:
        raise OutsideError(
            f"The catalog has revision {revision}; this Strandline knows revisions up to {HEAD}.",
            remedy="Use the newer Strandline that migrated it.",
            slug="catalog-newer",
        )
    return revision
