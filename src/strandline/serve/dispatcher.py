"""The dispatcher: one thread, one warm Spark, one piece of work at a time.

Requests go first, in the order in which they were recorded. Without requests it looks for work by itself:
when it is woken, when files have come, when the clock has reached another `as_of`, and when something that
failed is to be tried again.
"""

import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from strandline.app import requests, serving
from strandline.app.clock import now
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome
from strandline.app.watching import Happening, Watcher, tell
from strandline.app.work import WORK, Doing
from strandline.app.workspace import Workspace
from strandline.model.dispatching import DispatcherState, Pause
from strandline.model.errors import CallError, StrandlineError
from strandline.model.plan import Status
from strandline.model.report import listed
from strandline.model.requests import COMMAND_LINE, RequestClaim, RequestRecord, RequestStatus

from .following import Following, Followings
from .served import Served
from .spans import traced

log = structlog.get_logger("strandline.serve")

_FAILS = (Status.FAILED, Status.GUARDED, Status.FENCED)
_OTHERS = timedelta(minutes=1)
"""How often the tables are looked at on a lake that others may write."""
_TIDY = timedelta(minutes=1)
"""How often free memory goes back to the operating system."""
_ELSEWHERE = 2.0
"""Seconds between two looks at a request that another server may execute."""


@dataclass(slots=True, kw_only=True)
class Passing:
    """Work that is not recorded: it only reads, and whoever asked waits for it."""

    record: RequestRecord
    request: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A request that has been executed, and whose end is still to be recorded."""

    claim: RequestClaim
    outcome: object = None
    error: StrandlineError | None = None


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the dispatcher had seen when it last looked for work."""

    sources: Mapping[str, object] = field(default_factory=dict)
    tick: datetime | None = None
    at: datetime | None = None
    project: frozenset[tuple[str, int, int]] = frozenset()


class Dispatcher:
    """Implements `served.Work`. `start` begins the thread, `stop` ends it."""

    def __init__(
        self,
        *,
        dispatching: bool = True,
        warm: bool = True,
        environ: Mapping[str, str] | None = None,
        quiet: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`warm`: start Spark before there is work. `quiet`: entered while Spark starts."""
        self.name = serving.server_name()
        self.on_run: list[Callable[[RunOutcome], None]] = []
        """Called in the dispatcher's thread after each run."""
        self.on_published: list[Callable[[RunOutcome], None]] = []
        """Called in the dispatcher's thread after a run that published something."""
        self._dispatching, self._warm, self._quiet = dispatching, warm, quiet
        self._environ = os.environ if environ is None else environ
        self._followings = Followings()
        self._passing: deque[Passing] = deque()
        self._passed: dict[str, RequestRecord] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._dismissed = threading.Event()
        self._lock = threading.Lock()
        self._look = True
        self._tidied = now()
        self._ended: Ended | None = None
        self._seen = Seen()
        self._state = DispatcherState(dispatching=dispatching)
        self._pauses: dict[str, Pause] = {}
        self._trouble: Pause | None = None
        self._thread = threading.Thread(target=self._loop, name="dispatcher", daemon=True)
        self._beat = threading.Thread(target=self._renew, name="claims", daemon=True)
        self._served: Served

    # -- what routes call

    def submit(self, verb: str, request: object, actor: str) -> RequestRecord:
        """Record a request, wake the dispatcher and return at once. The request is executed once."""
        work = WORK.get(verb)
        if work is None or not isinstance(request, work.request):
            raise CallError(
                f"`{verb}` is not something that a server can be asked for.",
                remedy=f"It can be asked for {listed(WORK)}.",
                slug="unknown-work",
            )
        workspace = self._served.workspace
        if work.recorded:
            record = requests.record_request(workspace, self.name, verb, request, actor)
            self._followings.get(record.request)
            self._wake.set()
            return record
        record = RequestRecord(
            request=requests.request_name(self.name),
            verb=verb,
            arguments=None,
            actor=actor,
            status=RequestStatus.PENDING,
            created_at=now(),
        )
        self._followings.get(record.request)
        passing = Passing(record=record, request=request)
        self._passed[record.request] = record
        if work.aside:
            threading.Thread(target=self._answer, args=(passing,), daemon=True, name="aside").start()
        else:
            self._passing.append(passing)
            self._wake.set()
        return record

    async def wait(self, request: str, seconds: float) -> RequestRecord:
        """The request as it is when it has ended, when the time is up, or when the server is about to end."""
        record, left = self._find(request), seconds
        while not (record.status.is_over or self._dismissed.is_set()) and left > 0:
            step = min(left, _ELSEWHERE)
            await self._followings.get(request).wait(step)
            record, left = self._find(request), left - step
        return record

    def dismiss(self) -> None:
        """Answer whoever waits for a request within two seconds: the server ends, and the request is kept."""
        self._dismissed.set()

    async def watch(self, request: str) -> AsyncIterator[Happening]:
        """What happens while a request is executed, from its beginning to its end."""
        async for happening in self._followings.get(request).follow():
            yield happening

    def find_end(self, request: str) -> tuple[object, StrandlineError | None]:
        """The outcome and the error of a request that has been followed to its end."""
        following = self._followings.get(request)
        return following.outcome, following.error

    def abandon(self, request: str) -> None:
        """Nobody waits for this any more. Only what is not recorded and has not begun is left out."""
        with self._lock:
            left = deque(p for p in self._passing if p.record.request != request)
            if len(left) < len(self._passing):
                self._passing = left
                del self._passed[request]

    def wake(self) -> None:
        """There is something new to look for, such as received facts."""
        self._look = True
        self._wake.set()

    def state(self) -> DispatcherState:
        """What is being done, and what is put off."""
        with self._lock:
            return replace(self._state, paused=dict(self._pauses), trouble=self._trouble)

    # -- the thread

    def start(self, served: Served) -> None:
        self._served = served
        served.missing = "Spark is starting." if self._dispatching and self._warm else ""
        self._seen.project = self._look_at_project()
        if self._dispatching:
            requests.give_back_of_the_dead(served.workspace)
            self._thread.start()
            self._beat.start()
        else:
            threading.Thread(target=self._follow_project, name="project", daemon=True).start()

    def stop(self, seconds: float) -> bool:
        """End the thread. Work in progress is interrupted and waits for the next server. Whether it ended."""
        self._stop.set()
        self._wake.set()
        if not self._dispatching:
            return True
        until = now() + timedelta(seconds=seconds)
        while self._thread.is_alive() and now() < until:
            self._thread.join(0.5)
            if self._thread.is_alive():
                with suppress(Exception):  # Spark may be gone, or just starting
                    serving.stop_jobs()
        with suppress(StrandlineError):
            self._record_end()
            requests.give_back(self._served.workspace, self.name)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        if self._warm:
            self._start_spark()
        while not self._stop.is_set():
            self._wake.clear()
            try:
                busy = self._step()
                self._end_trouble(worked=busy)
                if busy:
                    self._served.missing = ""
            except Exception as error:  # noqa: BLE001 - the catalog or the disk: it is shown, and tried again
                self._note_trouble(serving.as_told(error))
                busy = False
            self._tidy()
            if not busy:
                self._wake.wait(self._served.workspace.project.settings.serve.poll.total_seconds())

    def _tidy(self) -> None:
        if now() >= self._tidied + _TIDY:
            serving.tidy()
            self._tidied = now()

    def _start_spark(self) -> None:
        try:
            with self._quiet():
                serving.warm_up(self._served.workspace)
            self._served.missing = ""
        except Exception as error:  # noqa: BLE001 - it is shown, and tried again with the first work
            self._note_trouble(serving.as_told(error))
            self._served.missing = "Spark has not started."

    def _step(self) -> bool:
        """One piece of work. False if there is none."""
        self._record_end()
        self._reload()
        claim = requests.take_request(self._served.workspace, self.name)
        if claim is not None:
            self._execute(claim)
            return True
        with self._lock:
            passing = self._passing.popleft() if self._passing else None
        if passing is not None:
            self._answer(passing)
            return True
        return self._may_try() and self._has_news() and self._run_due()

    # -- requests

    def _execute(self, claim: RequestClaim) -> None:
        record, workspace = claim.record, self._served.workspace
        following = self._followings.get(record.request)
        self._note(record.verb, record.request)
        try:
            request = self._adapt(requests.read_request(claim), record.actor)
            outcome = self._do(record.verb, request, record.request, following)
            if self._stop.is_set() and not isinstance(outcome, RunOutcome):
                raise KeyboardInterrupt  # its jobs may have been cancelled
        except KeyboardInterrupt:
            following.begin_again()
            requests.give_back(workspace, self.name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the result of the request
            told = serving.as_told(error)
            if self._stop.is_set():
                following.begin_again()
                requests.give_back(workspace, self.name)
            else:
                self._ended = Ended(claim=claim, error=told)
        else:
            self._ended = Ended(claim=claim, outcome=outcome)
        finally:
            self._note()
            self._look = True
        self._record_end()

    def _record_end(self) -> None:
        """Record the end of what was executed. Until the catalog has it nothing else is done.

        Otherwise the request would be running for ever, because this server renews its claim.
        """
        ended, workspace = self._ended, self._served.workspace
        if ended is None:
            return
        if ended.error is not None:
            recorded = requests.end_with_error(workspace, ended.claim, ended.error)
        else:
            recorded = requests.end_with_outcome(workspace, ended.claim, ended.outcome)
        self._ended = None
        if recorded:
            self._followings.get(recorded.request).end(ended.outcome, ended.error)
            self._conclude(ended.outcome)

    def _answer(self, passing: Passing) -> None:
        record = passing.record
        following = self._followings.get(record.request)
        if not WORK[record.verb].aside:
            self._note(record.verb, record.request)
        try:
            outcome = self._do(record.verb, passing.request, record.request, following)
            self._pass(replace(record, status=RequestStatus.DONE, ended_at=now()))
            following.end(outcome)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - it is the answer
            told = serving.as_told(error)
            error_document = requests.describe_error(told)
            following.end(error=told)
            self._pass(replace(record, status=RequestStatus.FAILED, ended_at=now(), error=error_document))
        finally:
            if not WORK[record.verb].aside:
                self._note()

    def _pass(self, record: RequestRecord) -> None:
        with self._lock:
            self._passed[record.request] = record
            for name in [n for n, r in self._passed.items() if r.status.is_over][:-100]:
                del self._passed[name]

    def _do(self, verb: str, request: object, name: str, following: Following) -> object:
        workspace = self._current() if WORK[verb].aside else self._served.workspace
        with traced(verb, name, tell(following.add, self._stop.is_set)) as watcher:
            return WORK[verb].do(Doing(workspace=workspace, watcher=watcher, request=name), request)

    def _adapt(self, request: object, actor: str) -> object:
        """A served run has the `as_of` of the server's clock. The command line has that of its start."""
        if isinstance(request, RunRequest) and request.as_of is None and actor != COMMAND_LINE:
            return replace(request, as_of=serving.find_tick(self._served.workspace), goes_back=False)
        return request

    def _find(self, request: str) -> RequestRecord:
        record = self._passed.get(request) or requests.find(self._served.workspace, request)
        if record is None:
            raise CallError(
                f"There is no request `{request}`.",
                remedy="`GET /v1/runs` lists what was done; requests are kept for `settings.keep`.",
                slug="unknown-request",
            )
        return record

    # -- own work

    def _has_news(self) -> bool:
        """Whether there may be work: a cheap look, without reading any table."""
        workspace, seen = self._served.workspace, self._seen
        sources, tick = serving.look_at_sources(workspace), serving.find_tick(workspace)
        if sources != seen.sources:
            changed = {name for name in sources if sources[name] != seen.sources.get(name)}
            with self._lock:
                for name in changed:  # a source that failed for one file takes the others at once
                    self._pauses.pop(name, None)
            self._look = True
        at = now()
        others = not workspace.lake.one_writer and (seen.at is None or at - seen.at >= _OTHERS)
        retry = any(pause.until <= at for pause in self._pauses.values())
        news = self._look or tick != seen.tick or others or retry
        if news:
            self._seen = replace(seen, sources=sources, tick=tick, at=at)
            self._look = False
        return news

    def _run_due(self) -> bool:
        """Run what is due and not put off. False if that is nothing."""
        workspace, at = self._served.workspace, now()
        as_of = serving.find_tick(workspace)
        put_off = {name for name, pause in self._pauses.items() if pause.until > at}
        request = serving.served_run(as_of)
        plan = serving.plan_served(workspace, as_of)
        due = frozenset(task.node for task in plan.tasks) - put_off
        if not due:
            return False
        if put_off:
            request = serving.served_run(as_of, due)
        self._note("run")
        try:
            with traced("run", "", Watcher(stopping=self._stop.is_set)) as watcher:
                outcome = WORK["run"].do(Doing(workspace=workspace, watcher=watcher), request)
        except KeyboardInterrupt:
            return True
        finally:
            self._note()
        assert isinstance(outcome, RunOutcome)
        self._conclude(outcome)
        done = any(r.status not in (*_FAILS, Status.BLOCKED) for r in outcome.results)
        self._look = self._look or done
        return True

    def _conclude(self, outcome: object) -> None:
        """After any run: what failed is put off, and others learn what was published."""
        if not isinstance(outcome, RunOutcome):
            return
        at = now()
        with self._lock:
            for result in outcome.results:
                if result.status in _FAILS:
                    earlier = self._pauses.get(result.node)
                    self._pauses[result.node] = Pause.after(earlier, at, result.error, result.slug)
                elif result.status is not Status.BLOCKED:
                    self._pauses.pop(result.node, None)
        for ran in self.on_run:
            ran(outcome)
        if any(r.status is Status.DONE for r in outcome.results):
            for published in self.on_published:
                published(outcome)

    def _may_try(self) -> bool:
        return self._trouble is None or self._trouble.until <= now()

    def _note_trouble(self, error: StrandlineError) -> None:
        """No work could be done. The pause grows when it has passed, not with each look in between."""
        with self._lock:
            earlier, at = self._trouble, now()
            again = earlier is None or earlier.until <= at
            self._trouble = Pause.after(earlier, at, str(error), error.slug) if again else earlier
            self._look = True
        if again and self._trouble is not None:
            log.warning("no work can be done", slug=error.slug, failures=self._trouble.failures)

    def _end_trouble(self, *, worked: bool) -> None:
        with self._lock:
            if self._trouble is not None and (worked or self._trouble.until <= now()):
                self._trouble = None

    def _note(self, doing: str = "", request: str = "") -> None:
        with self._lock:
            since = now() if doing else None
            self._state = replace(self._state, doing=doing, request=request, since=since)

    # -- the project

    def _look_at_project(self) -> frozenset[tuple[str, int, int]]:
        workspace = self._served.workspace
        return serving.look_at_project(workspace.project.folder, workspace.lake.local)

    def _reload(self) -> None:
        """Read a changed project again. A wrong one leaves the old one in force, and is shown."""
        files = self._look_at_project()
        if files == self._seen.project:
            return
        self._seen.project = files
        try:
            workspace = serving.reload_project(self._served.workspace, self._environ)
        except StrandlineError as error:
            self._served.project_error = str(error)
            return
        self._served.workspace, self._served.project_error = workspace, ""
        with self._lock:
            self._pauses.clear()
        self._look = True

    def _follow_project(self) -> None:
        """Without work to do, the project is looked at: a key that it revokes is revoked here too."""
        while not self._stop.wait(self._served.workspace.project.settings.serve.poll.total_seconds()):
            with suppress(OSError):  # files may go while they are read
                self._reload()
            self._tidy()

    def _current(self) -> Workspace:
        """The project as its files are now, for a plan that is made beside a run."""
        if self._look_at_project() == self._seen.project and not self._served.project_error:
            return self._served.workspace
        return serving.reload_project(self._served.workspace, self._environ)

    def _renew(self) -> None:
        while not self._stop.wait(requests.RENEW_SECONDS):
            with suppress(StrandlineError):  # out of reach for a moment
                requests.renew(self._served.workspace, self.name)
