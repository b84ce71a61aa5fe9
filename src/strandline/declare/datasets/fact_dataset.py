"""Fact datasets: record sets and event streams, and the checks of their declaration."""

import re

from strandline.declare.loading import Offer
from strandline.declare.yaml_lines import Document
from strandline.model.columns import METADATA_COLUMNS, POSITION, STRING, ColumnType, TypeName, native_name
from strandline.model.project import (
    Children,
    FactColumn,
    FactDataset,
    FileFormat,
    Guard,
    RecordSet,
    SourceTime,
)
from strandline.model.report import Report, find_nearest, listed, suggest
from strandline.sql.checks import check_deterministic, check_references, check_row_wise
from strandline.sql.known_columns import Known
from strandline.sql.parse import parse_expression

from .columns import DatasetContext, find_item_columns, make_columns, source_time_path
from .contract import Kind, settle_kind
from .paths import parse_list_path
from .spec import FactDatasetSpec, GuardSpec, SourceTimeSpec
from .values import parse_type

_TIMES = {
    TypeName.TIMESTAMP,
    TypeName.TIMESTAMP_MS,
    TypeName.TIMESTAMP_US,
    TypeName.TIMESTAMP_NS,
    TypeName.DATE,
    TypeName.BIGINT,  # a logical clock
}
_TIME_WORDS = "timestamp, timestamp_ms, timestamp_us, timestamp_ns, date or bigint"
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")


def make_fact_dataset(
    name: str,
    spec: FactDatasetSpec,
    source: Offer,
    native: frozenset[str] | None,
    document: Document,
    report: Report,
) -> tuple[FactDataset, Known]:
    path = ("datasets", name)
    exploded = (
        parse_list_path(spec.explode, document.place(*path, "explode"), report)
        if spec.explode is not None
        else ()
    )
    nested = any(step.endswith("[]") for step in exploded)
    is_exploded = spec.explode is not None
    context = DatasetContext(
        name=name,
        format=source.format,
        native=native,
        exploded=is_exploded,
        nested=nested,
        document=document,
        report=report,
    )
    if spec.explode is not None and not source.format.holds_messages:
        what = f"`explode` over the columns of {source.format} files is not supported by this version yet."
        report.add("not-yet", what, "Explode the list in a job.", document.place(*path, "explode"))
    columns = make_columns(spec.columns, context)
    if not spec.columns and source.format.holds_messages:
        what = f"the dataset `{name}` declares no columns."
        report.add("missing-key", what, "Add `columns:` with a path for each.", document.place(*path))
    known = _known_columns(columns, source, native)
    checks = _Checks(context, columns, known)
    kind = settle_kind(name, spec, document, report)
    record_set = checks.record_set(kind)
    if source.complete and not kind.is_record_set and kind.settled:
        what = (
            f"the source `{source.name}` is `complete`, so `{name}` must be a record set:"
            " a key that a file lacks is deleted."
        )
        remedy = f"Add `record_set: {{key: [...], order_by: [...]}}` to `{name}`."
        report.add("complete-without-record-set", what, remedy, document.place(*path))
    dataset = FactDataset(
        name=name,
        place=document.place(*path),
        source=source.name,
        where=checks.where(spec.where),
        explode=exploded,
        columns=columns,
        complete=source.complete,
        takes_other_columns=not source.format.holds_messages,
        require=checks.names(spec.require, "require"),
        record_set=record_set,
        identity=checks.names(kind.identity, "event_stream", "identity"),
        source_at=checks.source_at(spec.source_at, record_set),
        guard=_guard(spec.guard, context, kind),
    )
    return dataset, known


def _known_columns(columns: tuple[FactColumn, ...], source: Offer, native: frozenset[str] | None) -> Known:
    if source.format.holds_messages:
        types = {column.name: column.type.stored if column.type else None for column in columns}
        return Known(types=types, complete=True, names=frozenset(types))
    other = "string" if source.format is FileFormat.CSV else None
    types = {
        column.name: column.type.stored if column.type else None if column.sql else other
        for column in columns
    }
    if native is None:
        return Known(types=types, complete=False, other_type=other)
    renamed = {
        native_name(column.path[0])
        for column in columns
        if column.path and native_name(column.path[0]) != column.name
    }
    names = frozenset(types) | frozenset(c for c in native - renamed if not c.startswith("__"))
    return Known(types=types, complete=False, other_type=other, names=names)


class _Checks:
    """The parts of one dataset's declaration that name its columns."""

    def __init__(self, context: DatasetContext, columns: tuple[FactColumn, ...], known: Known) -> None:
        self.context = context
        self.columns = {column.name: column for column in columns}
        self.known = known
        self.of_item = find_item_columns(columns)
        self.path = ("datasets", context.name)

    def names(self, words: list[str], *where: str, also: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The names of columns in lower case. Reports names that do not exist or occur twice."""
        place = self.context.document.place(*self.path, *where)
        names: list[str] = []
        for word in words:
            name = word.lower()
            if name in names:
                what = f"`{word}` occurs twice in `{where[-1]}` of `{self.context.name}`."
                self.context.report.add("named-twice", what, "Keep one of them.", place)
                continue
            names.append(name)
            if name in METADATA_COLUMNS and name not in also:
                what = f"`{where[-1]}` of `{self.context.name}` names the metadata column `{name}`."
                remedy = "Only `order_by` may use one: `_source_position`, as its last column."
                self.context.report.add("metadata-column", what, remedy, place)
            elif self.known.names is not None and name not in self.known.names and name not in also:
                what = (
                    f"`{where[-1]}` of `{self.context.name}` names `{word}`, which is not one of its columns."
                )
                self.context.report.add(
                    "unknown-column", what, suggest(word, self.known.names, "columns"), place
                )
                names[-1] = find_nearest(name, self.known.names) or name
        return tuple(dict.fromkeys(names))

    def record_set(self, kind: Kind) -> RecordSet | None:
        if not kind.is_record_set:
            return None
        where, name, report, place = (
            kind.where,
            self.context.name,
            self.context.report,
            self.context.document.place(*self.path),
        )
        key = self.names(kind.key, where, kind.key_word)
        if not kind.order_by:
            what = (
                f"record set `{name}` has a key but no ordering, so two facts about one key cannot be ranked."
            )
            remedy = f"Add `{kind.order_word}: [<column>]` to `{name}`."
            report.add(
                "record-set-without-ordering", what, remedy, self.context.document.place(*self.path, where)
            )
        order_by = self.names(kind.order_by, where, kind.order_word, also=(POSITION,))
        if POSITION in order_by[:-1]:
            what = (
                f"`{POSITION}` ranks every fact, so nothing after it in `order_by` of `{name}` has an effect."
            )
            there = self.context.document.place(*self.path, where, kind.order_word)
            report.add("position-not-last", what, f"Put `{POSITION}` last.", there)
        if kind.deleted is not None:
            self.condition(kind.deleted, "deleted", where, "deleted", over_columns=True)
        parent_key = (
            tuple(column for column in key if column not in self.of_item) if self.context.exploded else ()
        )
        if kind.children == "replace":
            self.children(key, order_by, parent_key)
        latest = self.names(kind.latest_non_null, where, "latest_non_null")
        if both := [column for column in latest if column in key or column in order_by]:
            what = f"`latest_non_null` of `{name}` names {listed(both)}, which belong to `key` or `order_by`."
            report.add(
                "latest-non-null-of-key",
                what,
                "Leave them out: the row always has the key and the rank of the winning fact.",
                place,
            )
        children = Children(kind.children)
        return RecordSet(
            key=key,
            order_by=order_by,
            deleted=kind.deleted,
            children=children,
            latest_non_null=latest,
            parent_key=parent_key,
        )

    def children(self, key: tuple[str, ...], order_by: tuple[str, ...], parent_key: tuple[str, ...]) -> None:
        """With `children: replace` the newest parent lists all its children.

        So there must be a parent, and it must have a rank.
        """
        name, report = self.context.name, self.context.report
        place = self.context.document.place(*self.path, "record_set", "children")
        if not self.context.exploded:
            what = f"`{name}` has `children: replace` but does not explode a list, so it has no children."
            report.add(
                "children-without-explode",
                what,
                "Add `explode: <path of the list>`, or remove `children`.",
                place,
            )
            return
        if not parent_key:
            what = (
                f"`{name}` has `children: replace`, but every key column is read from `item`,"
                " so no column identifies the parent."
            )
            report.add(
                "children-without-parent",
                what,
                "Add the parent's key, read from the payload, to `key`.",
                place,
            )
        if of_item := [column for column in order_by if column in self.of_item]:
            what = (
                f"`order_by` of `{name}` uses {listed(of_item)} from `item`,"
                " but `children: replace` ranks parents."
            )
            report.add("children-ranked-by-item", what, "Order by columns of the message.", place)

    def condition(self, sql: str, what: str, *where: str, over_columns: bool) -> None:
        place, report = self.context.document.place(*self.path, *where), self.context.report
        described = f"`{what}` of `{self.context.name}`"
        tree = parse_expression(
            sql,
            described,
            lambda line: self.context.document.place_in_text((*self.path, *where), line),
            report,
        )
        if tree is None:
            return
        check_deterministic(tree, sql, lambda line: place, report, described)
        check_row_wise(tree, described, place, report)
        if over_columns and self.known.names is not None:
            check_references(tree, self.known.names, described, place, report)

    def where(self, sql: str | None) -> str | None:
        if sql is not None:
            self.condition(sql, "where", "where", over_columns=False)
        return sql

    def source_at(self, spec: str | SourceTimeSpec | None, record_set: RecordSet | None) -> SourceTime | None:
        place, report = self.context.document.place(*self.path, "source_at"), self.context.report
        if spec is None:
            ranked = record_set.order_by if record_set else ()
            first = next((name for name in ranked if self._is_timestamp(name)), None)
            return SourceTime(column=first) if first else None
        if isinstance(spec, str):
            (name,) = self.names([spec], "source_at")
            type_ = self.columns[name].type if name in self.columns else None
            if type_ is not None and not _can_be_time(type_):
                what = (
                    f"`source_at` of `{self.context.name}` names `{name}`, a `{type_}`, which is not a time."
                )
                report.add(
                    "source-at-not-a-time",
                    what,
                    f"Name a column of type {_TIME_WORDS}.",
                    place,
                )
            return SourceTime(column=name)
        type_ = parse_type(spec.type, place, report) if spec.type else ColumnType(name=TypeName.TIMESTAMP)
        if type_ is not None and not _can_be_time(type_):
            what = f"`source_at` of `{self.context.name}` has the type `{type_}`, which is not a time."
            report.add(
                "source-at-not-a-time",
                what,
                f"Use {_TIME_WORDS}.",
                place,
            )
        return SourceTime(path=source_time_path(spec.path, place, self.context), type=type_ or STRING)

    def _is_timestamp(self, name: str) -> bool:
        """According to the declaration: a hashed value must not depend on which files exist."""
        return self.known.types.get(name) == "timestamp"


def _can_be_time(type_: ColumnType) -> bool:
    return type_.name in _TIMES


def _guard(spec: bool | str | GuardSpec | None, context: DatasetContext, kind: Kind) -> Guard:
    if spec is None:
        return Guard()
    place = context.document.place("datasets", context.name, "guard")
    if not kind.is_record_set and kind.settled:
        what = f"`{context.name}` is an event stream: nothing is deleted from it, so a guard has no effect."
        context.report.add("guard-without-record-set", what, "Remove `guard`.", place)
    if not isinstance(spec, GuardSpec):
        return Guard(max_deleted_percent=100.0)
    text = str(spec.max_deleted)
    percentage = _PERCENT.fullmatch(text.strip())
    if not percentage or not 0 <= float(percentage[1]) <= 100:
        what = f"`max_deleted` is `{text}`, not a percentage."
        context.report.add("wrong-type", what, "Write a percentage such as `50%`.", place)
        return Guard()
    return Guard(max_deleted_percent=float(percentage[1]), at_least=spec.at_least)
