"""Every HTTP route of the server: what is not listed here cannot be called."""

from . import looking, outbox, working
from .declared import Route
from .health import make_health_routes


def make_routes() -> tuple[Route, ...]:
    return (*make_health_routes(), *looking.ROUTES, *working.ROUTES, *outbox.ROUTES)
