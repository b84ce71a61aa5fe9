"""Jobs: their inputs, their code, and how their inputs relate to the key."""

from pathlib import Path

import pytest

from strandline.model.node import By, Input, Lookup, Via, Whole
from strandline.model.project import Job, Language, Mode
from tests.unit.declare.builders import load, report, slugs

DATASETS = """
project: x
sources:
  events: {files: "d/*.jsonl"}
  trade_events: {files: "t/*.jsonl"}
datasets:
  property:
    from: events
    columns: {tenant_id: t, property_id: p, area: {path: a, type: bigint}, at: {path: at, type: timestamp}}
    record_set: {key: [tenant_id, property_id], order_by: [at]}
  demand:
    from: events
    columns: {tenant_id: t, demand_id: d, consumer_code: c, at: {path: at, type: timestamp}}
    record_set: {key: [tenant_id, demand_id], order_by: [at]}
  detail:
    from: events
    columns:
      {tenant_id: t, demand_id: d, detail_id: i, amount: {path: a, type: bigint},
       at: {path: at, type: timestamp}}
    record_set: {key: [tenant_id, demand_id, detail_id], order_by: [at]}
  trades:
    from: trade_events
    columns: {id: id, quantity: {path: q, type: bigint}}
"""


def job(text: str) -> str:
    return f"{DATASETS}jobs:\n  - name: a\n    output_dataset: a_out\n{text}"


def inputs(folder: Path, text: str, files: dict[str, str | bytes] | None = None) -> dict[str, Input]:
    return {i.name: i for i in load(folder, job(text), files).get("a_out").inputs}


def test_a_full_job_reads_whole_inputs_and_lookups(tmp_path: Path) -> None:
    text = """
    input_datasets: [property]
    lookup_datasets: [demand]
    sql: select p.area, d.consumer_code from property p cross join demand d
"""

    by_name = inputs(tmp_path, text)

    assert (by_name["property"].relation, by_name["demand"].relation) == (Whole(), Lookup())


def test_an_event_stream_is_read_from_its_facts(tmp_path: Path) -> None:
    by_name = inputs(tmp_path, "    input_datasets: [trades]\n    sql: select id from trades")

    assert (by_name["trades"].name, by_name["trades"].dataset) == ("trades", "trades_facts")


def test_facts_quarantines_and_sources_are_tables_too(tmp_path: Path) -> None:
    text = """
    input_datasets: [demand_facts, demand_quarantine, events]
    sql: >-
      select _payload as text from events union all select reason from demand_quarantine
      union all select demand_id from demand_facts
"""

    assert {i.dataset for i in inputs(tmp_path, text).values()} == {
        "demand_facts",
        "demand_quarantine",
        "events",
    }


def test_relations_are_taken_as_declared(tmp_path: Path) -> None:
    text = """
    input_datasets: [property, demand, detail, trades]
    incremental:
      mode: keyed
      key: [tenant_id, property_id]
      inputs:
        property: {by: [property_id, tenant_id]}
        demand: {by: {tenant_id: tenant_id, property_id: consumer_code}}
        detail: {via: demand, on: [tenant_id, demand_id]}
        trades: whole
    sql: |
      select p.tenant_id, p.property_id, sum(x.amount) as amount, max(t.quantity) as quantity
      from property p
      join demand d on d.tenant_id = p.tenant_id and d.consumer_code = p.property_id
      join detail x on x.tenant_id = d.tenant_id and x.demand_id = d.demand_id
      cross join trades t
      group by p.tenant_id, p.property_id
"""

    by_name = inputs(tmp_path, text)

    assert {name: i.relation for name, i in by_name.items()} == {
        "property": By(columns=("tenant_id", "property_id")),
        "demand": By(columns=("tenant_id", "consumer_code")),
        "detail": Via(input="demand", on=(("tenant_id", "tenant_id"), ("demand_id", "demand_id"))),
        "trades": Whole(),
    }
    assert not any(i.proved for i in by_name.values())


def test_on_may_map_columns_here_to_columns_there(tmp_path: Path) -> None:
    text = """
    input_datasets: [property, demand]
    incremental:
      mode: keyed
      key: [tenant_id, property_id]
      inputs:
        demand: {via: property, on: {tenant_id: tenant_id, consumer_code: property_id}}
    sql: |
      select p.tenant_id, p.property_id, d.demand_id
      from property p join demand d on d.tenant_id = p.tenant_id and d.consumer_code = p.property_id
"""

    by_name = inputs(tmp_path, text)

    assert by_name["demand"].relation == Via(
        input="property", on=(("tenant_id", "tenant_id"), ("consumer_code", "property_id"))
    )
    assert (by_name["property"].relation, by_name["property"].proved) == (
        By(columns=("tenant_id", "property_id")),
        True,
    )


def test_relations_are_proved_through_the_output_of_another_job(tmp_path: Path) -> None:
    text = """
    input_datasets: [demand]
    incremental: {mode: keyed, key: [tenant_id, property_id]}
    sql: select tenant_id, consumer_code as property_id, count(*) as n from demand group by 1, 2
  - name: b
    output_dataset: b_out
    input_datasets: [a_out, property]
    incremental: {mode: keyed, key: [tenant_id, property_id]}
    sql: select p.*, n from property p left join a_out using (tenant_id, property_id)
"""

    reported = report(tmp_path, job(text))

    assert "how `demand` relates" in reported
    fixed = text.replace(
        "mode: keyed, key: [tenant_id, property_id]}\n    sql: select tenant_id, consumer",
        "mode: keyed, key: [tenant_id, property_id], "
        "inputs: {demand: {by: {tenant_id: tenant_id, property_id: consumer_code}}}}\n"
        "    sql: select tenant_id, consumer",
    )
    b_inputs = load(tmp_path, job(fixed)).get("b_out").inputs
    assert [i.proved for i in b_inputs] == [True, True]


def test_a_job_keeps_its_code_and_what_it_was_told(tmp_path: Path) -> None:
    text = """
    input_datasets: [property]
    incremental: {mode: keyed, key: [Tenant_Id, property_id]}
    strict_incremental: true
    config: {least: 3}
    sql: jobs/a.sql
"""
    sql = "select tenant_id, property_id from property where area > :least and at < :as_of"

    definition = load(tmp_path, job(text), {"jobs/a.sql": sql}).get("a_out").definition

    assert isinstance(definition, Job)
    assert (definition.mode, definition.key, definition.language) == (
        Mode.KEYED,
        ("tenant_id", "property_id"),
        Language.SQL,
    )
    assert (definition.code, definition.file) == (sql, "jobs/a.sql")
    assert definition.strict_incremental
    assert definition.uses_as_of
    assert definition.config == {"least": 3}


def test_a_python_job_keeps_the_source_of_its_module(tmp_path: Path) -> None:
    code = "def totals(inputs, context):\n    return inputs['property'].where(context.as_of > 1)\n"

    project = load(
        tmp_path, job("    input_datasets: [property]\n    python: jobs/a.py:totals"), {"jobs/a.py": code}
    )

    definition = project.get("a_out").definition
    assert isinstance(definition, Job)
    assert (definition.language, definition.code, definition.function) == (Language.PYTHON, code, "totals")
    assert definition.uses_as_of


def test_a_described_output_gives_the_job_its_row_key(tmp_path: Path) -> None:
    yaml = job("    input_datasets: [property]\n    sql: select tenant_id, area from property")
    described = yaml.replace("jobs:", "  a_out: {key: [Tenant_ID]}\njobs:")

    definition = load(tmp_path, described).get("a_out").definition

    assert isinstance(definition, Job)
    assert definition.row_key == ("tenant_id",)
    assert slugs(tmp_path, described.replace("[Tenant_ID]", "[tenant]")) == ["unknown-column"]


KEYED = (
    "    input_datasets: [property]\n    incremental: {mode: keyed, key: [tenant_id, property_id]%s}\n"
    "    sql: %s\n"
)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("    input_datasets: [propertie]\n    sql: select 1 from propertie", "unknown-dataset"),
        (
            "    input_datasets: [property]\n    lookup_datasets: [rates]\n    sql: select 1 from property",
            "unknown-dataset",
        ),
        (
            "    input_datasets: [property]\n    sql: select 1 as x from property cross join demand",
            "undeclared-input",
        ),
        ("    input_datasets: [property]\n    sql: select 1 as x from other.property", "undeclared-input"),
        ("    input_datasets: [property, demand]\n    sql: select 1 as x from property", "unused-input"),
        ("    input_datasets: [property, property]\n    sql: select 1 as x from property", "named-twice"),
        (
            "    input_datasets: [property]\n    lookup_datasets: [property]\n"
            "    sql: select 1 as x from property",
            "named-twice",
        ),
        (
            "    input_datasets: [trades, trades_facts]\n"
            "    sql: select trades.id from trades join trades_facts using (id)",
            "named-twice",
        ),
        ("    input_datasets: [property]", "job-without-code"),
        (
            "    input_datasets: [property]\n    sql: select 1 as x from property\n    python: a.py:f",
            "sql-and-python",
        ),
        ("    input_datasets: [property]\n    sql: jobs/none.sql", "file-not-found"),
        ("    input_datasets: [property]\n    python: jobs/none.py:f", "file-not-found"),
        ("    input_datasets: [property]\n    python: jobs/none.py", "bad-python"),
        ("    sql: select 1 as x", "missing-key"),
        (
            "    input_datasets: [property]\n    incremental: {mode: keyed}\n    sql: select * from property",
            "keyed-without-key",
        ),
        (
            "    input_datasets: [property]\n    incremental: {mode: full, key: [x]}\n"
            "    sql: select * from property",
            "unused-key",
        ),
        (KEYED % ("", "select tenant_id, area from property"), "key-not-in-output"),
        (
            KEYED % ("", "select tenant_id, property_id, sum(area) over () as s from property"),
            "input-relation-unknown",
        ),
        (KEYED % (", inputs: {property: {by: [tenant_id]}}", "select * from property"), "by-is-not-the-key"),
        (
            KEYED
            % (
                ", inputs: {property: {by: {tenant_id: tenant, property_id: property_id}}}",
                "select * from property",
            ),
            "unknown-column",
        ),
        (KEYED % (", inputs: {propertie: whole}", "select * from property"), "unknown-dataset"),
        (
            KEYED % (", inputs: {property: {via: property, on: [tenant_id]}}", "select * from property"),
            "via-cycle",
        ),
        (
            KEYED % (", inputs: {property: {via: demand, on: [tenant_id]}}", "select * from property"),
            "unknown-dataset",
        ),
        (KEYED % (", inputs: {property: {via: demand}}", "select * from property"), "missing-key"),
        (KEYED % (", inputs: {property: all}", "select * from property"), "unknown-value"),
    ],
)
def test_a_mistake_in_a_job_has_its_slug(text: str, slug: str, tmp_path: Path) -> None:
    assert sorted(set(slugs(tmp_path, job(text)))) == sorted(slug.split())


def test_via_a_whole_input_finds_no_key(tmp_path: Path) -> None:
    text = """
    input_datasets: [property, demand]
    incremental:
      mode: keyed
      key: [tenant_id, property_id]
      inputs: {property: whole, demand: {via: property, on: [tenant_id]}}
    sql: select p.* from property p join demand d using (tenant_id)
"""

    assert slugs(tmp_path, job(text)) == ["via-whole"]


def test_a_keyed_python_job_declares_its_inputs(tmp_path: Path) -> None:
    text = (
        "    input_datasets: [property]\n    incremental: {mode: keyed, key: [tenant_id]%s}\n"
        "    python: a.py:f\n"
    )
    files: dict[str, str | bytes] = {"a.py": "def f(inputs, context):\n    return inputs['property']\n"}

    undeclared = report(tmp_path, job(text % ""), files)
    declared = report(tmp_path, job(text % ", inputs: {property: {by: [tenant_id]}}"), files)

    assert "Python jobs always declare `inputs`" in undeclared
    assert declared == ""


@pytest.mark.parametrize(
    ("sql", "slug"),
    [
        ("select area as _deleted from property", "metadata-column"),
        ("select area as _KEY from property", "metadata-column"),
        ("select area as _config from property", "metadata-column"),
        ("select area as _state from property", "metadata-column"),
        ("select _source_at, area from property", "metadata-column"),
        ("with p as (select area as __area from property) select * from p", "bad-name"),
        ("select area as __total from property", "bad-name"),
        ("select area as `to tal` from property", "bad-name"),
        ("select area as `a.b` from property", "bad-name"),
        ("select area as _total, _source_at as happened_at from property", ""),
    ],
)
def test_a_job_gives_no_column_a_name_that_is_the_engines_own(sql: str, slug: str, tmp_path: Path) -> None:
    reported = slugs(tmp_path, job(f"    input_datasets: [property]\n    sql: {sql!r}"))

    assert reported == ([slug] if slug else [])


@pytest.mark.parametrize(
    ("sql", "reads", "whole"),
    [
        ("select area from property", {"area"}, False),
        ("select `Area` from property", {"area"}, False),
        ("select * from property", set(), True),
        ("select p.* from property p", set(), True),
        ("select count(*) as n from property", set(), False),
        ("select count(distinct *) as n from property", set(), True),
        ("with p as (select area from property) select * from p", {"area"}, False),
        ("select x.* from (select area, at from property) x", {"area", "at"}, False),
        ("select (select max(area) from property) as a", {"area"}, False),
    ],
)
def test_the_columns_that_sql_may_read_are_known(
    sql: str, reads: set[str], whole: bool, tmp_path: Path
) -> None:
    property_input = inputs(tmp_path, f"    input_datasets: [property]\n    sql: {sql!r}")["property"]

    assert property_input.reads & {"area", "at"} == reads & {"area", "at"}
    assert ("*" in property_input.reads) is whole
