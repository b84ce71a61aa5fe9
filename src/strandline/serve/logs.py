"""Logs: one JSON object a line, on stderr."""

import logging
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


_REFUSED_SOCKET = "ASGI callable returned without completing handshake."
"""uvicorn says so of each WebSocket that was refused. It has been logged by then."""


class LibraryEvents(logging.Handler):
    """Warnings and errors of libraries, as lines of the same form. Python prints them as text otherwise."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() != _REFUSED_SOCKET:
            log = structlog.get_logger(record.name)
            log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)


def log_libraries() -> None:
    """Called once, in a process that is a server and nothing else."""
    logging.getLogger().addHandler(LibraryEvents(logging.WARNING))
