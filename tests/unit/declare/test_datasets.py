"""Fact datasets: columns, kinds, and their declarations."""

from pathlib import Path

import pytest

from strandline.declare.datasets.values import fit_default
from strandline.model.columns import TimeUnit, find_type
from strandline.model.errors import Place
from strandline.model.node import Project
from strandline.model.project import Children, FactColumn, FactDataset, RecordSet, SourceTime
from strandline.model.report import Report
from tests.unit.declare.builders import load, report, slugs

SOURCES = (
    'sources: {events: {files: "d/*.jsonl"}, register: {files: "d/*.csv"}, '
    'exports: {files: "e/*.csv", complete: true}}'
)


def yaml(dataset: str) -> str:
    return f"project: x\n{SOURCES}\ndatasets:\n  a: {dataset}\n"


def facts(project: Project, name: str = "a") -> FactDataset:
    definition = project.get(f"{name}_facts").definition
    assert isinstance(definition, FactDataset)
    return definition


def column(dataset: FactDataset, name: str) -> FactColumn:
    return next(c for c in dataset.columns if c.name == name)


def record_set(project: Project) -> RecordSet:
    record_set = facts(project).record_set
    assert record_set is not None
    return record_set


def test_columns_in_their_short_and_long_forms(tmp_path: Path) -> None:
    dataset = facts(
        load(
            tmp_path,
            yaml(
                "{from: events, columns: {Id: a.b, n: {path: n, type: bigint, default: 0}, "
                'y: {sql: "n + 1"}, j: {path: j, type: json}}}'
            ),
        )
    )

    assert column(dataset, "id").path == ("a", "b")
    assert str(column(dataset, "id").type) == "string"
    assert (str(column(dataset, "n").type), column(dataset, "n").default) == ("bigint", 0)
    assert (column(dataset, "y").sql, column(dataset, "y").type) == ("n + 1", None)
    assert not dataset.takes_other_columns


def test_a_source_with_columns_of_its_own_gives_them_all_and_paths_default_to_names(tmp_path: Path) -> None:
    dataset = facts(
        load(tmp_path, yaml("{from: register, columns: {Amount: {type: bigint}, name: full.name}}"))
    )

    assert dataset.takes_other_columns
    assert column(dataset, "amount").path == ("Amount",)
    assert column(dataset, "name").path == ("full.name",)
    assert column(dataset, "name").type is None


def test_a_dataset_that_is_neither_kind_is_an_event_stream_without_identity(tmp_path: Path) -> None:
    project = load(tmp_path, yaml("{from: events, columns: {id: id}}"))

    assert (facts(project).record_set, facts(project).identity) == (None, ())
    assert project.find("a") is None
    assert project.tables["a"] == "a_facts"


def test_the_seeds_contract_means_the_same_as_a_record_set(tmp_path: Path) -> None:
    columns = "columns: {id: ID, updatedat: {path: UPDATEDAT, type: timestamp}}"

    contract = load(
        tmp_path,
        yaml(
            f"{{from: events, {columns}, contract: {{is_append_only: true, override_channel: ID, "
            f"override_ordering: UPDATEDAT}}}}"
        ),
    )
    ours = load(
        tmp_path, yaml(f"{{from: events, {columns}, record_set: {{key: [id], order_by: [updatedat]}}}}")
    )

    assert record_set(contract) == record_set(ours)
    assert contract.get("a").config == ours.get("a").config


def test_the_seeds_contract_may_say_event_stream(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        yaml("{from: events, columns: {id: ID}, contract: {is_append_only: true, is_event_stream: true}}"),
    )

    assert facts(project).record_set is None


@pytest.mark.parametrize(
    ("dataset", "slug"),
    [
        (
            "{from: events, columns: {id: id}, record_set: {key: [id], order_by: [id]}, "
            "event_stream: {identity: [id]}}",
            "two-kinds",
        ),
        (
            "{from: events, columns: {id: id}, contract: {is_event_stream: true, override_channel: id, "
            "override_ordering: id}}",
            "two-kinds",
        ),
        (
            "{from: events, columns: {id: id}, record_set: {key: [id], order_by: [id]}, "
            "contract: {override_channel: id, override_ordering: id}}",
            "two-kinds",
        ),
        (
            "{from: events, columns: {id: id}, contract: {override_channel: id}}",
            "record-set-without-ordering",
        ),
        ("{from: events, columns: {id: id}, contract: {override_ordering: id}}", "ordering-without-key"),
        ("{from: events, columns: {id: id}, contract: {is_append_only: false}}", "not-append-only"),
        ("{from: events, columns: {id: id}, contract: {is_event_stream: false}}", "record-set-without-key"),
        ("{from: events, columns: {id: id}, record_set: {key: [idd], order_by: [id]}}", "unknown-column"),
        ("{from: events, columns: {id: id}, record_set: {key: [id], order_by: [at]}}", "unknown-column"),
        ("{from: events, columns: {id: id}, record_set: {key: [id, ID], order_by: [id]}}", "named-twice"),
        ("{from: events, columns: {id: id}, record_set: {key: [_key], order_by: [id]}}", "metadata-column"),
        (
            "{from: events, columns: {id: id}, record_set: {key: [id], order_by: [_ingested_at]}}",
            "metadata-column",
        ),
        (
            "{from: events, columns: {id: id, at: at}, "
            "record_set: {key: [id], order_by: [_source_position, at]}}",
            "position-not-last",
        ),
        ("{from: events, columns: {id: id}, event_stream: {identity: [ident]}}", "unknown-column"),
        ("{from: events, columns: {id: id}, require: [name]}", "unknown-column"),
        ("{from: events, columns: {id: id}, source_at: at}", "unknown-column"),
        ("{from: events, columns: {id: id}, source_at: id}", "source-at-not-a-time"),
        ("{from: events, columns: {id: id}, source_at: {path: x, type: int}}", "source-at-not-a-time"),
        ("{from: events, columns: {id: id}, guard: off}", "guard-without-record-set"),
        ("{from: events}", "missing-key"),
        ("{from: events, columns: {id: id, ID: x}}", "columns-coincide"),
        ("{from: events, columns: {_deleted: id}}", "metadata-column"),
        ("{from: events, columns: {__id: id}}", "bad-name"),
        ("{from: events, columns: {a b: id}}", "bad-name"),
        ("{from: events, columns: {id: {type: int}}}", "column-without-path"),
        ("{from: events, columns: {id: {path: a, sql: b}}}", "path-and-sql"),
        ("{from: events, columns: {id: {path: a, type: varchar}}}", "unknown-type"),
        ("{from: events, columns: {id: {path: a, type: 'decimal(40,2)'}}}", "unknown-type"),
        ("{from: events, columns: {id: {path: a, type: int, default: x}}}", "default-does-not-fit"),
        ("{from: events, columns: {id: 'a[0].b'}}", "bad-path"),
        ("{from: events, columns: {id: item.id}}", "item-without-explode"),
        ("{from: events, explode: units, columns: {id: parent.id}}", "parent-without-nesting"),
        ("{from: events, explode: 'units[]', columns: {id: item.id}}", "bad-path"),
        ("{from: register, explode: units, columns: {id: id}}", "not-yet"),
        ("{from: events, columns: {id: {sql: 'now()'}}}", "nondeterministic"),
        ("{from: events, columns: {id: {sql: 'sum(x)'}}}", "sql-not-row-wise"),
        ("{from: events, columns: {id: {sql: 'x + :as_of'}}}", "sql-not-row-wise"),
        ("{from: events, columns: {id: {sql: '(select 1)'}}}", "sql-not-row-wise"),
        ("{from: events, columns: {id: {sql: 'x +'}}}", "sql-syntax"),
        ("{from: events, columns: {id: {sql: ''}}}", "sql-syntax"),
        ("{from: events, where: 'x = uuid()', columns: {id: id}}", "nondeterministic"),
        ("{from: events, where: 'x =', columns: {id: id}}", "sql-syntax"),
        (
            "{from: events, columns: {id: id}, record_set: {key: [id], order_by: [id], "
            "deleted: \"op = 'D'\"}}",
            "unknown-column",
        ),
        (
            "{from: events, columns: {id: id, at: at}, "
            "record_set: {key: [id], order_by: [at], latest_non_null: [at]}}",
            "latest-non-null-of-key",
        ),
        ("{from: exports}", "complete-without-record-set"),
        ("{from: exports, event_stream: {identity: [id]}}", "complete-without-record-set"),
        (
            "{from: events, columns: {id: id}, record_set: {key: [id], order_by: [id], children: replace}}",
            "children-without-explode",
        ),
        (
            "{from: events, explode: u, columns: {id: item.id, at: at}, "
            "record_set: {key: [id], order_by: [at], children: replace}}",
            "children-without-parent",
        ),
        (
            "{from: events, explode: u, columns: {p: p, id: item.id, at: item.at}, "
            "record_set: {key: [p, id], order_by: [at], children: replace}}",
            "children-ranked-by-item",
        ),
        (
            "{from: events, explode: u, columns: {p: p, id: item.id, at: {sql: 'item.at + 1'}}, "
            "record_set: {key: [p, id], order_by: [at], children: replace}}",
            "children-ranked-by-item",
        ),
        (
            "{from: events, columns: {id: id}, record_set: {key: [id], order_by: [id]}, "
            "guard: {max_deleted: most}}",
            "wrong-type",
        ),
        ("{from: nowhere, columns: {id: id}}", "unknown-source"),
        ("{key: [id]}", "unknown-dataset"),
    ],
)
def test_a_mistake_in_a_dataset_has_its_slug(dataset: str, slug: str, tmp_path: Path) -> None:
    assert slugs(tmp_path, yaml(dataset)) == [slug]


def test_a_dataset_over_a_source_without_a_file_may_name_columns_it_does_not_declare(tmp_path: Path) -> None:
    dataset = (
        "{from: register, record_set: {key: [id], order_by: [at, _source_position], deleted: \"op = 'D'\"}, "
        "require: [name]}"
    )

    assert report(tmp_path, yaml(dataset)) == ""


def test_the_parents_key_is_what_is_not_taken_from_the_element(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        yaml(
            "{from: events, explode: 'a[].b', columns: {t: tenant, p: parent.id, i: item, "
            "c: {sql: \"coalesce(item.x, 'none')\"}, "
            "d: {sql: c}, at: at}, record_set: {key: [t, p, i, d], order_by: [at], children: replace}}"
        ),
    )

    assert facts(project).explode == ("a[]", "b")
    assert record_set(project).parent_key == ("t", "p")
    assert record_set(project).children is Children.REPLACE


def test_the_source_time_is_the_first_timestamp_of_the_order_unless_said(tmp_path: Path) -> None:
    columns = (
        "columns: {id: id, n: {path: n, type: bigint}, at: {path: at, type: timestamp_ms}}, "
        "record_set: {key: [id], order_by: [n, at]}"
    )

    default = facts(load(tmp_path, yaml(f"{{from: events, {columns}}}")))
    declared = facts(
        load(tmp_path, yaml(f"{{from: events, {columns}, source_at: {{path: seen.at, type: timestamp_us}}}}"))
    )

    assert default.source_at == SourceTime(column="at")
    assert declared.source_at is not None
    assert (declared.source_at.path, str(declared.source_at.type)) == (("seen", "at"), "timestamp_us")


@pytest.mark.parametrize(
    ("type_", "unit"),
    [
        ("timestamp_ms", TimeUnit.MILLISECONDS),
        ("timestamp_us", TimeUnit.MICROSECONDS),
        ("timestamp_ns", TimeUnit.NANOSECONDS),
        ("timestamp", TimeUnit.MICROSECONDS),
        ("date", TimeUnit.MICROSECONDS),
        ("bigint", TimeUnit.MILLISECONDS),
    ],
)
def test_the_type_of_the_source_time_says_its_unit(tmp_path: Path, type_: str, unit: TimeUnit) -> None:
    columns = f"columns: {{id: id, at: {{path: at, type: {type_}}}}}"

    by_column = facts(load(tmp_path, yaml(f"{{from: events, {columns}, source_at: at}}")))
    by_path = facts(
        load(tmp_path, yaml(f"{{from: events, {columns}, source_at: {{path: seen, type: {type_}}}}}"))
    )
    without = facts(load(tmp_path, yaml(f"{{from: events, {columns}}}")))

    assert (by_column.time_unit, by_path.time_unit) == (unit, unit)
    assert (without.source_at, without.time_unit) == (None, TimeUnit.MILLISECONDS)


@pytest.mark.parametrize(
    ("guard", "percent", "at_least"),
    [
        ("{max_deleted: 20%, at_least: 5}", 20.0, 5),
        ("{max_deleted: 12.5%}", 12.5, 100),
        ("{max_deleted: 30}", 30.0, 100),
        ("{at_least: 0}", 50.0, 0),
        ("off", 100.0, 100),
        ("false", 100.0, 100),
    ],
)
def test_a_guard_is_a_share_and_a_number(guard: str, percent: float, at_least: int, tmp_path: Path) -> None:
    dataset = facts(
        load(
            tmp_path,
            yaml(
                f"{{from: events, columns: {{id: id}}, record_set: {{key: [id], order_by: [id]}}, "
                f"guard: {guard}}}"
            ),
        )
    )

    assert (dataset.guard.max_deleted_percent, dataset.guard.at_least) == (percent, at_least)


@pytest.mark.parametrize(
    ("type_", "value", "fitted"),
    [
        ("string", "x", "x"),
        ("bigint", 2**40, 2**40),
        ("double", 1, 1),
        ("decimal(5,2)", 123.45, 123.45),
        ("decimal(5,2)", "123.45", "123.45"),
        ("boolean", False, False),
        ("date", "2024-02-29", "2024-02-29"),
        ("timestamp", "2024-01-13T08:30:00Z", "2024-01-13T08:30:00Z"),
        ("timestamp_ms", 1705123456789, "2024-01-13T05:24:16.789000Z"),
        ("timestamp_us", 0, "1970-01-01T00:00:00.000000Z"),
        ("timestamp_ns", 1705123456789012345, "2024-01-13T05:24:16.789012Z"),
        ("json", {"a": [1]}, '{"a": [1]}'),
        ("json", "[1]", "[1]"),
    ],
)
def test_a_default_that_fits_its_type_is_taken(type_: str, value: object, fitted: object) -> None:
    check = Report()
    column_type = find_type(type_)
    assert column_type is not None

    assert fit_default(value, column_type, Place(file="x", line=1), check) == fitted
    assert len(check) == 0


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("string", 3),
        ("int", 2**31),
        ("int", 1.5),
        ("int", True),
        ("bigint", "3"),
        ("double", "x"),
        ("decimal(5,2)", 1234.5),
        ("decimal(5,2)", 1.234),
        ("decimal(5,2)", "x"),
        ("boolean", 1),
        ("date", "2023-02-29"),
        ("date", "20240101"),
        ("timestamp", "yesterday"),
        ("timestamp_ms", "2024-01-13"),
        ("int", [1]),
        ("double", {"a": 1}),
    ],
)
def test_a_default_that_does_not_fit_its_type_is_a_mistake(type_: str, value: object) -> None:
    check = Report()
    column_type = find_type(type_)
    assert column_type is not None

    assert fit_default(value, column_type, Place(file="x", line=1), check) is None
    assert [mistake.slug for mistake in check.mistakes] == ["default-does-not-fit"]
