"""The rows of a query."""

from strandline.app.query import QueryResult


def query_document(result: QueryResult) -> dict[str, object]:
    return {
        "engine": result.engine,
        "columns": list(result.columns),
        "rows": [list(row) for row in result.rows],
        "version": dict(result.version),
        "published_only": list(result.published_only),
        "notes": list(result.notes),
    }
