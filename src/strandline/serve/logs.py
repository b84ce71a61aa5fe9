"""Logs: one JSON object a line, on stderr."""

import sys
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer

_WITHOUT_VALUES = ExceptionDictTransformer(show_locals=False)
"""Local variables may be keys and rows, so traces never have them."""


def configure_logs(stream: TextIO | None = None) -> None:
    """Called once, when the server starts."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.ExceptionRenderer(_WITHOUT_VALUES),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
