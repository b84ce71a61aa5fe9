"""The planner: one pass over the nodes, inputs before readers."""

from dataclasses import dataclass, field, replace

from strandline.model.filters import describe
from strandline.model.node import Lookup, Node, NodeConfig, NodeKind, Project, Whole
from strandline.model.plan import Cause, Cursor, Held, Plan, PlannedInput, Scope, ScopeKind, Strategy, Task
from strandline.model.project import FileSource, Job, Mode
from strandline.model.records import Invalidation, NodeRecord, Operation, TableState

from .estimates import Amount, estimate
from .request import Observed, PlanRequest
from .selection import downstream
from .sources import plan_source
from .staleness import current_config, find_frozen, find_stale

_APPENDED = (NodeKind.FACTS, NodeKind.QUARANTINE)


@dataclass(slots=True)
class _Draft:
    """The plan as far as it has been made."""

    tasks: dict[str, Task] = field(default_factory=dict)
    increments: dict[str, Amount] = field(default_factory=dict)
    """How much of its output each task may change."""
    stale: list[Held] = field(default_factory=list)
    frozen: list[Held] = field(default_factory=list)


def plan(project: Project, observed: Observed, request: PlanRequest) -> Plan:
    """The tasks that would bring outputs up to date, in the order they would run."""
    draft = _Draft()
    selected = _selected(project, request)
    for node in project.nodes:
        config = current_config(node, observed)
        record = observed.view.nodes.get(node.name)
        asked = request.backfill is not None and node.name in request.backfill.nodes
        # What was received is never changed (L1): a source has nothing to write anew.
        derived = record if node.inputs else None
        frozen = find_frozen(node, derived, config) if derived else None
        stale = find_stale(node, derived, config) if derived and not frozen else None
        if node.name not in selected:
            task = None
        elif isinstance(node.definition, FileSource):
            task = None if request.backfill or request.release else _plan_source(node, node.definition, observed, draft)
        elif asked:
            task = _plan_backfill(node, observed, draft, request, frozen, stale)
        elif request.release is not None and node.name in project.names[request.release] and node.kind in _APPENDED:
            task = _plan_release(node, observed, draft)
        elif frozen:
            task = None
        else:
            task = _plan_node(node, config, observed, draft, request)
        if task is not None:
            draft.tasks[node.name] = task
        if frozen and not (task and task.overwrite):
            draft.frozen.append(_with_cost(node, frozen, observed))
        if stale and task and stale.partitions:
            left = tuple(p for p in stale.partitions if p not in task.partitions)
            stale = replace(stale, partitions=left) if left else None
        if stale and not (task and task.strategy is Strategy.FULL and not task.refuses):
            draft.stale.append(_with_cost(node, stale, observed))
    return Plan(as_of=request.as_of, tasks=tuple(draft.tasks.values()), stale=tuple(draft.stale), frozen=tuple(draft.frozen))


def _with_cost(node: Node, held: Held, observed: Observed) -> Held:
    """What the backfill that it waits for would read: its partitions' rows, or all inputs."""
    record = observed.view.nodes.get(node.name)
    if held.partitions and record:
        return replace(held, backfill_rows=sum(record.partitions[p].row_count for p in held.partitions))
    inputs = [observed.view.nodes.get(i.dataset) for i in node.inputs]
    return replace(held, backfill_rows=sum(r.row_count for r in inputs if r))


def _selected(project: Project, request: PlanRequest) -> frozenset[str]:
    everything = frozenset(n.name for n in project.nodes) if request.selected is None else request.selected
    if request.backfill is not None:
        return everything & frozenset(downstream(project, request.backfill.nodes))
    if request.release is not None:
        return everything & frozenset(downstream(project, project.names[request.release]))
    return everything


def _plan_source(node: Node, source: FileSource, observed: Observed, draft: _Draft) -> Task | None:
    task = plan_source(node, source, observed)
    if task is not None:
        draft.increments[node.name] = Amount(rows=task.estimated_rows, bytes=task.estimated_bytes)
    return task


def _plan_node(node: Node, config: NodeConfig, observed: Observed, draft: _Draft, request: PlanRequest) -> Task | None:
    record, own = observed.view.nodes.get(node.name), observed.tables.get(node.name)
    if any(i.dataset not in observed.tables and i.dataset not in draft.tasks for i in node.inputs):
        return None  # an input that has never been received: nothing to compute from
    if record is None or not record.cursors or (own is None and node.kind is not NodeKind.QUARANTINE):
        return _full(node, observed, draft, Cause.NEW_NODE, "it has not been built yet", new=True)
    if gap := _find_gap(node, record, own, observed):
        return _full(node, observed, draft, Cause.GAP, gap.reason, new=gap.rewrite)
    inputs = _planned_inputs(node, record, observed, draft)
    if _clock_moved(node, record, request):
        return _full(node, observed, draft, Cause.CLOCK, f"it uses :as_of, which was {record.as_of}", new=False)
    if not any(i.changes for i in inputs):
        return None
    return _incremental(node, inputs, observed, draft)


def _clock_moved(node: Node, record: NodeRecord, request: PlanRequest) -> bool:
    return isinstance(node.definition, Job) and node.definition.uses_as_of and record.as_of != request.as_of.isoformat()


def _why(node: Node, inputs: tuple[PlannedInput, ...], observed: Observed) -> Cause:
    """An invalidation among what has not been read is named; ordinary commits flow as new input."""
    for given in inputs if node.kind is NodeKind.JOB else ():
        table = observed.tables.get(given.dataset)
        if given.changes and given.after and table and _invalidations(table, given.after):
            return Cause.INVALIDATION
    return Cause.NEW_INPUT


def _invalidations(table: TableState, cursor: Cursor) -> tuple[Invalidation, ...]:
    return tuple(i for c in table.commits_after(cursor.version) if c.metadata for i in c.metadata.invalidations)


def _incremental(node: Node, inputs: tuple[PlannedInput, ...], observed: Observed, draft: _Draft) -> Task:
    changed = [i for i in inputs if i.changes]
    text = "; ".join(_describe(node, i, observed, draft) for i in changed)
    if node.kind in _APPENDED:
        scope = Scope(kind=ScopeKind.ROWS, text=f"the rows in {text}")
        task = _task(node, Cause.NEW_INPUT, Strategy.APPEND, f"new rows in {text}", scope, inputs, draft)
        return _estimated(node, task, observed, draft)
    for given in changed:
        whole = isinstance(node.get_input(given.name).relation, Whole)
        if given.after is None:
            return _full(node, observed, draft, Cause.NEW_INPUT, f"`{given.name}` is a new input of it", new=False)
        if not whole and _rewritten(given, observed, draft):
            return _full(node, observed, draft, Cause.NEW_INPUT, f"`{given.dataset}` was written anew", new=False)
    if any(isinstance(node.get_input(i.name).relation, Whole) for i in changed):
        return _widen(node, inputs, text, observed, draft)
    return _recompute(node, inputs, f"changed rows in {text}", text, observed, draft)


def _widen(node: Node, inputs: tuple[PlannedInput, ...], text: str, observed: Observed, draft: _Draft) -> Task:
    """A change in an input that is read whole touches everything; a job may refuse that."""
    whole = tuple(i for i in inputs if i.changes and isinstance(node.get_input(i.name).relation, Whole))
    names = " and ".join(f"`{i.name}`" for i in whole) + (" is" if len(whole) == 1 else " are")
    job = node.definition
    assert isinstance(job, Job)  # nothing else reads an input whole
    if job.mode is Mode.FULL:
        reason = f"mode `full` recomputes everything when an input changes: {text}"
        return _full(node, observed, draft, _why(node, inputs, observed), reason, new=False)
    if not job.strict_incremental:
        reason = f"{names} read whole, so a change widens the task to everything: {text}"
        return _full(node, observed, draft, _why(node, inputs, observed), reason, new=False)
    refuses = tuple(i.dataset for i in whole)
    if any(i.after and i.dataset in observed.tables and pending(node, observed.tables[i.dataset], i.after) for i in whole):
        reason = f"{names} read whole and changed, and `strict_incremental` refuses to recompute everything: {text}"
        return replace(_full(node, observed, draft, Cause.NEW_INPUT, reason, new=False), refuses=refuses)
    # Whether this run changes it is not known yet. Most often it does not, and refusing on suspicion would hold the job up for ever.
    left = tuple(replace(i, changes=False) if i in whole else i for i in inputs)
    others = "; ".join(_describe(node, i, observed, draft) for i in left if i.changes)
    reason = f"{names} read whole: if this run changes that, `strict_incremental` refuses to recompute everything"
    if not others:
        return replace(_recompute(node, left, reason, "", observed, draft), refuses=refuses)
    return replace(_recompute(node, left, f"changed rows in {others}; {reason}", others, observed, draft), refuses=refuses)


def _recompute(node: Node, inputs: tuple[PlannedInput, ...], reason: str, where: str, observed: Observed, draft: _Draft) -> Task:
    task = _task(node, _why(node, inputs, observed), Strategy.RECOMPUTE, reason, _scope_of(node, where), inputs, draft)
    return _estimated(node, task, observed, draft)


def _scope_of(node: Node, where: str) -> Scope:
    """What a change touches, in the words of the node's mode."""
    job = node.definition if isinstance(node.definition, Job) else None
    kind = ScopeKind.PARTITIONS if job and job.partition else ScopeKind.KEYS
    if not where:
        return Scope(kind=kind, text="nothing")
    what = f"values of {job.key[0]}" if job and job.mode is Mode.CURSOR else str(kind)
    return Scope(kind=kind, text=f"the {what} in {where}")


def _plan_backfill(
    node: Node, observed: Observed, draft: _Draft, request: PlanRequest, frozen: Held | None, stale: Held | None
) -> Task | None:
    assert request.backfill is not None
    if any(i.dataset not in observed.tables and i.dataset not in draft.tasks for i in node.inputs):
        return None
    part = bool(request.backfill.partitions or request.backfill.filter)
    if frozen and part:
        return None  # what is frozen stays until --all
    if request.backfill.only_stale and (frozen or not stale):
        # A frozen node needs --all; one that is up to date needs nothing but what its inputs bring.
        return None if frozen else _plan_node(node, current_config(node, observed), observed, draft, request)
    why = f": {request.backfill.reason}" if request.backfill.reason else ""
    held = frozen or stale
    reason = f"backfill asked for{why}" + (f" ({', '.join(held.changed)} changed)" if held else "")
    partitions = stale.partitions if stale and request.backfill.only_stale else request.backfill.partitions
    if (partitions or request.backfill.filter) and not frozen and node.name in observed.tables:
        return _plan_part(node, observed, draft, request, reason, partitions)
    return _full(node, observed, draft, Cause.PERSON, reason, new=frozen is not None or node.kind in _APPENDED)


def _plan_part(node: Node, observed: Observed, draft: _Draft, request: PlanRequest, reason: str, partitions: tuple[str, ...]) -> Task:
    """A backfill of some scopes, and with it what has not been read: cursors may not pass over that."""
    assert request.backfill is not None
    where, record = request.backfill.filter, observed.view.nodes[node.name]
    if gap := _find_gap(node, record, observed.tables.get(node.name), observed):
        return _full(node, observed, draft, Cause.PERSON, f"{reason}; and {gap.reason}", new=gap.rewrite)
    if _clock_moved(node, record, request):
        return _full(node, observed, draft, Cause.PERSON, f"{reason}; and it uses :as_of, which was {record.as_of}", new=False)
    inputs = _planned_inputs(node, record, observed, draft)
    for given in (i for i in inputs if i.changes):
        if given.after is None or _rewritten(given, observed, draft):
            return _full(node, observed, draft, Cause.PERSON, f"{reason}; and `{given.dataset}` was written anew", new=False)
        if isinstance(node.get_input(given.name).relation, Whole):
            return _full(node, observed, draft, Cause.PERSON, f"{reason}; and `{given.name}`, which is read whole, has changed", new=False)
    text = describe(where) if where else ", ".join(partitions[:5]) + (f" and {len(partitions) - 5} more" if len(partitions) > 5 else "")
    scope = Scope(kind=ScopeKind.PARTITIONS if partitions else ScopeKind.KEYS, text=text)
    task = replace(_task(node, Cause.PERSON, Strategy.RECOMPUTE, reason, scope, inputs, draft), partitions=partitions, filter=where)
    said = _estimated(node, task, observed, draft)
    asked = [record.partitions[p] for p in partitions if p in record.partitions]
    more = Amount(rows=sum(p.row_count for p in asked), bytes=sum(p.bytes for p in asked))
    read = (Amount(rows=said.estimated_rows, bytes=said.estimated_bytes) + more).within(Amount(rows=said.full_rows, bytes=said.full_bytes))
    draft.increments[node.name] = draft.increments.get(node.name, Amount()) + more
    return replace(said, estimated_rows=read.rows, estimated_bytes=read.bytes)


def _plan_release(node: Node, observed: Observed, draft: _Draft) -> Task | None:
    quarantine = f"{node.name.removesuffix('_facts').removesuffix('_quarantine')}_quarantine"
    if node.name not in observed.tables or quarantine not in observed.tables:
        return None  # nothing was ever refused
    if node.kind is NodeKind.FACTS:
        task = _full(node, observed, draft, Cause.PERSON, "quarantined positions are decoded again", new=False)
        refused = observed.view.nodes.get(quarantine)
        rows = refused.row_count if refused else 0
        draft.increments[node.name] = Amount(rows=rows)
        scope = Scope(kind=ScopeKind.ROWS, text="the quarantined positions")
        return replace(task, strategy=Strategy.APPEND, release=True, scope=scope, estimated_rows=rows, estimated_bytes=0)
    return _full(node, observed, draft, Cause.PERSON, "what now passes leaves the quarantine", new=True)


def _full(node: Node, observed: Observed, draft: _Draft, cause: Cause, reason: str, *, new: bool) -> Task:
    record = observed.view.nodes.get(node.name)
    cursors = record.cursors if record and not new else {}
    inputs = tuple(PlannedInput(name=i.name, dataset=i.dataset, after=cursors.get(i.dataset), changes=True) for i in node.inputs)
    scope = Scope(kind=ScopeKind.EVERYTHING, text="everything")
    task = replace(_task(node, cause, Strategy.FULL, reason, scope, inputs, draft), overwrite=new)
    return _estimated(node, task, observed, draft)


def _task(node: Node, cause: Cause, strategy: Strategy, reason: str, scope: Scope, inputs: tuple[PlannedInput, ...], draft: _Draft) -> Task:
    needs = tuple(dict.fromkeys(i.dataset for i in inputs if i.dataset in draft.tasks))
    if node.kind is NodeKind.QUARANTINE:
        facts = node.name.removesuffix("_quarantine") + "_facts"
        needs = (*needs, facts) if facts in draft.tasks else needs  # it reuses what the facts' task decoded
    return Task(node=node.name, kind=node.kind, cause=cause, strategy=strategy, reason=reason, scope=scope, inputs=inputs, needs=needs)


def _planned_inputs(node: Node, record: NodeRecord, observed: Observed, draft: _Draft) -> tuple[PlannedInput, ...]:
    return tuple(
        PlannedInput(
            name=i.name,
            dataset=i.dataset,
            after=record.cursors.get(i.dataset),
            changes=not isinstance(i.relation, Lookup)
            and (
                i.dataset in draft.tasks
                or i.dataset not in record.cursors
                or bool(pending(node, observed.tables[i.dataset], record.cursors[i.dataset]))
            ),
        )
        for i in node.inputs
    )


def pending(node: Node, table: TableState, cursor: Cursor) -> tuple[int, ...]:
    """The versions past a cursor that give a node work: never compactions, fences and purges, and invalidations only jobs."""
    wakes = node.kind is NodeKind.JOB
    return tuple(c.version for c in table.commits_after(cursor.version) if (c.wakes_readers if wakes else c.changes_rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """Why no increment can be read, or none be written."""

    reason: str
    rewrite: bool
    """Whether the table is replaced, schema and all."""


def _find_gap(node: Node, record: NodeRecord, own: TableState | None, observed: Observed) -> _Gap | None:
    if own is not None and record.table_id and record.table_id != own.table_id:
        return _Gap(reason="its table was deleted and made again by someone else", rewrite=True)
    if own is not None and own.version < record.table_version:
        return _Gap(reason=f"its table went back from version {record.table_version} to {own.version}", rewrite=True)
    if own is not None and (foreign := [c for c in own.commits_after(record.table_version) if c.foreign]):
        text = ", ".join(f"{c.version} ({c.operation})" for c in foreign)
        return _Gap(reason=f"its table has commits that are not Strandline's: version {text}", rewrite=node.kind in _APPENDED)
    if reason := _find_input_gap(node, record, observed):
        return _Gap(reason=reason, rewrite=node.kind in _APPENDED)
    return None


def _find_input_gap(node: Node, record: NodeRecord, observed: Observed) -> str | None:
    for given in node.inputs:
        cursor, table = record.cursors.get(given.dataset), observed.tables.get(given.dataset)
        if cursor is None:
            continue
        if table is None:
            return f"the table of `{given.dataset}` is gone; this run makes it again"
        if cursor.table_id != table.table_id:
            return f"`{given.dataset}` is not the table it was read from before"
        if cursor.version > table.version:
            return f"`{given.dataset}` went back from version {cursor.version} to {table.version}"
        if cursor.version + 1 < table.earliest and cursor.version < table.version:
            return f"the log of `{given.dataset}` reaches back to version {table.earliest} only, and it was read up to {cursor.version}"
    return None


def _rewritten(given: PlannedInput, observed: Observed, draft: _Draft) -> bool:
    """Whether the pending stretch of an input holds a rewrite of the whole table, across which no increment can be read."""
    task = draft.tasks.get(given.dataset)
    if task is not None and task.overwrite:
        return True
    table = observed.tables.get(given.dataset)
    if table is None or given.after is None:
        return False
    return any(c.metadata is not None and c.metadata.operation is Operation.OVERWRITE for c in table.commits_after(given.after.version))


def _describe(node: Node, given: PlannedInput, observed: Observed, draft: _Draft) -> str:
    table = observed.tables.get(given.dataset)
    versions = pending(node, table, given.after) if table and given.after else ()
    parts = []
    if versions:
        assert table is not None
        assert given.after is not None
        rows = sum(c.rows_added for c in table.commits_after(given.after.version) if c.changes_rows)
        span = f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
        parts.append(f"{span} of `{given.dataset}`, about {rows:,} rows")
        if node.kind is NodeKind.JOB and (said := _invalidations(table, given.after)):
            reasons = ", ".join(sorted({i.reason for i in said}))
            parts[-1] += f", {len(said)} invalidation{'' if len(said) == 1 else 's'} ({reasons})"
    if given.dataset in draft.tasks:
        parts.append(f"what this run writes to `{given.dataset}`")
    return " and ".join(parts) or f"all of `{given.dataset}`"


def _estimated(node: Node, task: Task, observed: Observed, draft: _Draft) -> Task:
    task, draft.increments[node.name] = estimate(node, task, observed, draft.tasks, draft.increments)
    return task
