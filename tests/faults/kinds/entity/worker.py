"""The plain worker of entities: the model of entities over the rows of tables."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG, DELETED, KEY, STATE
from strandline.model.commits import Operation
from strandline.model.definitions import ColumnWork, plan_task
from strandline.model.entity import Entity
from strandline.model.entity import Variable as Declared
from strandline.plan.clock import effective_as_of
from tests.faults.plain_work import (
    KEYED_COLUMNS,
    Work,
    compare,
    key_hash,
    live,
    place_of,
    write_rows,
    write_whole,
)
from tests.faults.table_log import Row as TableRow
from tests.property import entity_model
from tests.property.entity_model import Node, Published
from tests.property.entity_world import COMPUTED, RECORDS, STREAM, Row, Variable, World

from .data import DEVICES, READINGS, ROOM

DATASETS = {DEVICES.dataset: RECORDS, f"{READINGS.dataset}_facts": STREAM, ROOM: COMPUTED}
"""By table: what the model calls it."""
FACTS = f"{DEVICES.dataset}_facts"
NAMED_BY = {
    RECORDS: f"{FACTS}(room)",
    STREAM: f"{READINGS.dataset}_facts(room)",
    COMPUTED: f"{ROOM}(best)",
}
"""By what the model calls a dataset: what `_state` calls it."""
ANOTHER = -99
"""In the place of `least`: another definition than any that is declared."""
_SELECT = re.compile(r"(count|sum|max)\((distinct )?(\w+)\)")


@dataclass(slots=True)
class Seen(World):
    """What a task reads of its inputs. Snapshots have been folded already."""

    live: dict[str, set[Row]] = field(default_factory=dict)

    def rows(self, dataset: str) -> set[Row]:
        return self.live[dataset]


def prepare(work: Work) -> Prepared:
    """Compute the entities that a change or the clock touches, and compare with what is published."""
    entity = entity_of(work)
    own = None if work.task.overwrite else work.read_own()
    columns = plan_task(work.node, work.task, work.record, work.node.config, work.inputs)
    as_of = _count_days(effective_as_of(work.node, work.record, work.desk.as_of, work.task))
    node, seen = Node(as_of=as_of), _see(work, entity, work.read)
    known = columns.computed | columns.kept
    declared = [make_variable(entity, v) for v in entity.variables if not v.expr and v.name in known]
    if own is not None and not work.full:
        assert work.record is not None
        before = _see(work, entity, work.read_before)
        told = set(before.facts)
        seen.facts = [*before.facts, *(fact for fact in seen.facts if fact not in told)]
        node = Node(
            table=_read_table(own, entity, declared),
            as_of=_count_days(datetime.fromisoformat(work.record.as_of)),
            read=before.live,
            facts_read=len(before.facts),
            defined={v.name: v for v in declared if v.name in columns.followed},
        )
        node.defined |= {v.name: replace(v, least=ANOTHER) for v in declared if v.name in columns.kept}
    elif own is not None:
        node.table = {id_: _only(columns.kept, of) for id_, of in _read_table(own, entity, declared).items()}
        node.defined = {v.name: replace(v, least=ANOTHER) for v in declared if v.name in columns.kept}
    entity_model.run(node, seen, declared, as_of, backfill=False, accumulates=lambda v: v.window is not None)
    kept = {row[entity.id[0]]: row for row in live(own or ())}
    rows = [
        _write_row(work, entity, columns, owner, published, kept.get(owner, {}))
        for owner, published in node.table.items()
    ]
    schema = schema_of(entity, columns)
    if own is None or columns.dropped:
        return write_whole(schema, rows)
    prepared = replace(compare(work, schema, rows, live(own), bury=True), whole=True)
    if prepared.write is None and work.stale:
        # The commit says which columns miss what has arrived, although no row differs.
        return replace(prepared, write=write_rows(Operation.COUNTS, schema, []))
    return prepared


def entity_of(work: Work) -> Entity:
    assert isinstance(work.node.definition, Entity)
    return work.node.definition


def make_variable(entity: Entity, declared: Declared) -> Variable:
    """A variable of the project file, as the model takes it."""
    select = _SELECT.fullmatch(declared.select)
    assert select, f"the model does not know {declared.select}"
    default = declared.default
    assert default is None or isinstance(default, int)
    return Variable(
        name=declared.name,
        dataset=DATASETS[entity.get_use(declared.use).dataset],
        aggregate="distinct" if select[2] else select[1],
        least=int(declared.where.rstrip(" \n)").rsplit(" ", 1)[1]) if declared.where else 0,
        window=declared.window.seconds // 86_400 if declared.window else None,
        default=default,
    )


def _see(work: Work, entity: Entity, read: Callable[[str], list[TableRow]]) -> Seen:
    seen = Seen()
    for use in entity.uses:
        if use.dataset not in work.inputs:
            continue  # it was never received
        variables = entity.variables_of(use)
        counted = _SELECT.fullmatch(variables[0].select)
        assert counted
        at = next((v.window.column for v in variables if v.window), "")
        owner, name = use.columns[0], DATASETS[use.dataset]
        found = _make_rows(live(read(use.dataset)), name, owner, counted[3], at)
        seen.live[name] = set(found)
        if name == STREAM:
            seen.facts += found
        elif name == RECORDS:
            seen.facts += _make_rows(read(FACTS), name, owner, counted[3], at)
    return seen


def _make_rows(rows: Iterable[TableRow], name: str, owner: str, value: str, at: str) -> list[Row]:
    """Rows of a table as the model sees them. No two are equal: a fact has a place, other rows a key."""
    return [
        Row(
            dataset=name,
            record=row[KEY] if name == COMPUTED else int.from_bytes(repr(place_of(row)).encode()),
            owner=row[owner],
            value=row[value],
            at=row[at].toordinal() if at and row[at] is not None else None,
            order=row.get("at") or 0,
            deleted=row.get("op") == "D",
        )
        for row in rows
    ]


def _count_days(at: datetime) -> int:
    return at.date().toordinal()


def _read_table(
    rows: Iterable[TableRow], entity: Entity, variables: Sequence[Variable]
) -> dict[int, Published]:
    return {row[entity.id[0]]: _read_row(row, variables) for row in live(rows)}


def _only(kept: Collection[str], published: Published) -> Published:
    """Somebody of whom nothing is known but the columns that are kept."""
    return Published(values={name: n for name, n in published.values.items() if name in kept}, named=set())


def _read_row(row: TableRow, variables: Sequence[Variable]) -> Published:
    state = json.loads(row[STATE])
    leaves = {name: (leaf[0], leaf[1]) for name, leaf in state.items() if name != "named"}
    datasets = {name: dataset for dataset, name in NAMED_BY.items()}
    return Published(
        values={v.name: row.get(v.name) for v in variables},
        named={datasets[name] for name in state["named"]},
        leaves=leaves,
    )


def _write_row(
    work: Work, entity: Entity, columns: ColumnWork, owner: int, published: Published, before: TableRow
) -> TableRow:
    values: dict[str, int | None] = dict(published.values)
    for variable in entity.in_order():
        if variable.name not in columns.computed:
            values |= {name: before.get(name) for name in columns.kept & {variable.name}}
            continue
        needed = [values[name] for name in variable.needs]
        values[variable.name] = None if None in needed else sum(n for n in needed if n is not None)
    state: dict[str, object] = {"named": sorted(NAMED_BY[dataset] for dataset in published.named)}
    state |= {name: list(leaf) for name, leaf in published.leaves.items() if name in values}
    return {
        entity.id[0]: owner,
        **values,
        STATE: json.dumps(state, sort_keys=True),
        KEY: key_hash((owner,)),
        DELETED: False,
        CONFIG: work.config.hash,
    }


def schema_of(entity: Entity, columns: ColumnWork) -> pa.Schema:
    names = [v.name for v in entity.variables if v.name in columns.computed | columns.kept]
    return pa.schema(
        [*((name, pa.int64()) for name in (*entity.id, *names)), (STATE, pa.string()), *KEYED_COLUMNS]
    )
