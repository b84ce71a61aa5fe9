"""What a server is doing, and what it puts off because it fails."""

from strandline.model.dispatching import DispatcherState, Pause


def dispatcher_document(state: DispatcherState) -> dict[str, object]:
    return {
        "dispatching": state.dispatching,
        "doing": state.doing or None,
        "request": state.request or None,
        "since": state.since,
        "paused": [{"node": node, **_pause(pause)} for node, pause in sorted(state.paused.items())],
        "trouble": None if state.trouble is None else _pause(state.trouble),
    }


def _pause(pause: Pause) -> dict[str, object]:
    return {
        "slug": pause.slug,
        "error": pause.error,
        "failures": pause.failures,
        "tried_again_at": pause.until,
    }
