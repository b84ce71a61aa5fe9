"""Facts: what a source received is decoded once, and what passes is appended.

Every stream of the other kinds brings a fact dataset.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date

import pyarrow as pa

from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG, DELETED, INGESTED_AT, KEY, PAYLOAD, POSITION
from strandline.model.commits import Operation
from strandline.model.node import Node
from strandline.model.project import FactDataset
from strandline.model.scope import Rows
from tests.faults.evidence import Evidence, Place, only, require
from tests.faults.plain_work import (
    INGESTED_COLUMN,
    KEYED_COLUMNS,
    POSITION_COLUMN,
    Work,
    key_hash,
    write_rows,
)
from tests.faults.table_log import Row

from .kind import Kind, Stream

Fact = tuple[Place, Row]
_TYPES = {"string": pa.string(), "bigint": pa.int64(), "date": pa.date32()}


def prepare(work: Work) -> Prepared:
    """Decode what came since the cursor; append what passes, with the counts of L10."""
    dataset = facts_of(work.node)
    passed, refused = decode(work, dataset)
    counts = {
        "offered": len(passed) + len(refused),
        "accepted": len(passed),
        "duplicates": 0,
        "quarantined": len(refused),
    }
    operation = Operation.OVERWRITE if work.full else Operation.APPEND if passed else Operation.COUNTS
    return Prepared(
        write=write_rows(operation, facts_schema(dataset), passed),
        scope=Rows(count=counts["offered"]),
        rows_written=len(passed),
        live_rows=len(passed) + (0 if work.full else work.live_rows),
        counts={**counts, "passed_over": 0, "derived": 0},
        whole=work.full,
    )


def decode(work: Work, dataset: FactDataset) -> tuple[list[Row], list[Row]]:
    """The rows that pass and those that fail."""
    received = work.read(dataset.source) if work.full else work.read_added(dataset.source)
    passed, refused = [], []
    for row in received:
        beside = {POSITION: row[POSITION], INGESTED_AT: row[INGESTED_AT], CONFIG: work.config.hash}
        fact, slug = decode_line(dataset, row[PAYLOAD])
        if fact is None:
            refused.append({"slug": slug, "payload": row[PAYLOAD], **beside})
        else:
            passed.append(
                {
                    **fact,
                    **beside,
                    KEY: key_hash(tuple(fact[c] for c in key_of(dataset))),
                    DELETED: fact.get("op") == "D",
                }
            )
    return passed, refused


def decode_line(dataset: FactDataset, text: str) -> tuple[Row | None, str]:
    try:
        message = json.loads(text)
    except ValueError:
        return None, "not-json"
    fact: Row = {}
    for column in dataset.columns:
        value = message.get(column.path[0])
        stored = column.type.stored if column.type is not None else "string"
        if value is not None and stored == "bigint" and not isinstance(value, int):
            return None, "bad-value"
        fact[column.name] = date.fromisoformat(value) if value is not None and stored == "date" else value
    if any(fact[c] is None for c in (*key_of(dataset), *dataset.require)):
        return None, "null-key"
    return fact, ""


def key_of(dataset: FactDataset) -> tuple[str, ...]:
    return dataset.record_set.key if dataset.record_set else ()


def facts_schema(dataset: FactDataset) -> pa.Schema:
    columns = [(c.name, _TYPES[c.type.stored]) for c in dataset.columns if c.type is not None]
    return pa.schema([*columns, POSITION_COLUMN, INGESTED_COLUMN, *KEYED_COLUMNS])


def facts_of(node: Node) -> FactDataset:
    """The declaration that facts, what was refused of them and their snapshot share."""
    facts = getattr(node.definition, "facts", node.definition)
    assert isinstance(facts, FactDataset)
    return facts


def check(evidence: Evidence) -> None:
    """L10: each fact is once among the facts; at rest all of them are, and the counts say so."""
    for stream in evidence.world.streams:
        name, facts = f"{stream.dataset}_facts", dict(facts_sent(evidence, stream))
        taken = evidence.by_place(name, "L10")
        right = all(p in facts and only(row, stream.columns) == facts[p] for p, row in taken.items())
        require(right, "L10 facts", stream.dataset)
        if evidence.at_rest:
            missing = facts.keys() - taken.keys()
            require(not missing, "L10 no fact is missing", stream.dataset, missing)
            _check_counts(evidence, name, len(evidence.lines(stream)), len(facts))


def _check_counts(evidence: Evidence, name: str, offered: int, accepted: int) -> None:
    """L10: offered = accepted + duplicates + quarantined + passed over, and each is what was sent."""
    counts = evidence.nodes[name].counts
    counted = (counts["offered"], counts["accepted"], counts["quarantined"])
    expected = (offered, accepted, offered - accepted)
    require(counted == expected, "L10 counts", name, counts, expected)


def facts_sent(evidence: Evidence, stream: Stream) -> list[Fact]:
    return accepted(evidence.lines(stream).items(), stream.columns, stream.required)


def accepted(
    lines: Iterable[tuple[Place, str]],
    columns: Mapping[str, str],
    required: Collection[str],
    *,
    deletes: Callable[[Row], bool] = lambda _: False,
    needed: Collection[str] = (),
) -> list[Fact]:
    """The lines that are facts: they parse, nothing required is NULL, numbers are numbers.

    A fact that deletes requires the `needed` columns alone. Others that do not fit are NULL.
    No line has a date that is not one.
    """
    facts, dates = [], [c for c, type_ in columns.items() if type_ == "date"]
    for place, text in lines:
        try:
            message = json.loads(text)
        except ValueError:
            continue
        fact = {c: message.get(c) for c in columns}
        for c in dates:
            fact[c] = fact[c] and date.fromisoformat(fact[c])
        wrong = {
            c for c, type_ in columns.items() if type_ == "bigint" and not isinstance(fact[c], int | None)
        }
        if deletes(fact):
            fact |= dict.fromkeys(wrong)
            wrong = set()
        if not wrong and all(fact[c] is not None for c in (needed if deletes(fact) else required)):
            facts.append((place, fact))
    return facts


KIND = Kind(name="facts", prepare=prepare, check=check)
