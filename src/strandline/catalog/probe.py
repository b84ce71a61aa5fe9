"""Whether a catalog is sound and can be written now, found out without writing."""

from sqlalchemy.exc import DatabaseError

from .handle import Catalog, unreachable


def require_writable(catalog: Catalog) -> None:
    """Take the right to write and give it back. Raises `unreachable` if another process holds it for long."""
    with catalog.writing():
        pass


def find_damage(catalog: Catalog) -> str:
    """What is wrong with the file of a SQLite catalog; empty if it is sound. A locked one raises."""
    if not catalog.on_sqlite:
        return ""
    try:
        with catalog.engine.connect() as connection:
            answer = str(connection.exec_driver_sql("PRAGMA quick_check").scalar())
    except DatabaseError as error:
        text = str(error.orig)
        if "not a database" in text or "malformed" in text:
            return text
        raise unreachable(catalog, error) from error
    return "" if answer == "ok" else answer
