"""An order that leaves rows equal is refused where it matters which of them comes first (L11)."""

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from strandline.sql.known_columns import Known
from strandline.sql.proof import Table, analyse
from tests.unit.declare.builders import PROPERTY, load, report, slugs

TYPES = {"id": "bigint", "k": "string", "g": "bigint", "v": "bigint"}
TABLES = {
    "item": Table(
        known=Known(types=TYPES, complete=True, names=frozenset(TYPES), unique=(("id",),)), by=("k",)
    ),
    "other": Table(
        known=Known(types={"id": "bigint", "w": "bigint"}, complete=True, unique=(("id",),)), by=()
    ),
    "log": Table(known=Known(types={"k": "string", "g": "bigint"}, complete=True), by=("k",)),
    "mapped": Table(known=Known(types={}, complete=False), by=("k",)),
    "wide": Table(known=Known(types={}, complete=False, other_type="string"), by=("k",)),
}


def ties(sql: str) -> list[str]:
    tree = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(tree, exp.Query)
    return [f"{tie.what} {tie.remedy}" for tie in analyse(tree, ("k",), TABLES).ties]


@pytest.mark.parametrize(
    "sql",
    [
        "select k, row_number() over (partition by k order by g) as n from item",
        "select k, ntile(4) over (partition by k order by g) as n from item",
        "select k, lag(v) over (partition by k order by g) as p from item",
        "select k, lead(v) over (partition by k order by g) as p from item",
        "select k, lag(g) over (partition by k order by g) as p from item",
        "select k, first_value(v) over (partition by k order by g) as p from item",
        "select k, last(v) ignore nulls over (partition by k order by g) as p from item",
        "select k, nth_value(v, 2) over (partition by k order by g) as p from item",
        (
            "select k, first_value(g) over (partition by k "
            "order by g rows between 1 preceding and current row) as p, v from item"
        ),
        (
            "select k, sum(v) over (partition by k "
            "order by g rows between unbounded preceding and current row) as s from item"
        ),
        "select k, collect_list(v) over (partition by k order by g) as s from item",
        "select k, row_number() over w as n from item window w as (partition by k order by g)",
        "select k, max_by(v, g) as v from item group by k",
        "select k, min_by(v, g) as v from item group by k",
        "select k, max_by(v, struct(g, k)) as v from item group by k",
        "select k, max_by(v, g) over (partition by k) as v from item",
        "select k, listagg(v, ',') within group (order by g) as vs from item group by k",
        "select k, v from item order by g limit 3",
        "select k, v from item order by g, id % 10 limit 3",
        "select k, v from item qualify row_number() over (partition by k order by g) = 1",
        "select k, v from (select * from item where v in (select v from item order by g limit 1))",
        (
            "with a as (select k, row_number() over (partition by k order by g) as n from item) "
            "select k from a where n = 1"
        ),
        (
            "select a.k, row_number() over (partition by a.k order by a.id) as n from item a "
            "join log b on a.k = b.k"
        ),
        "select k, row_number() over (order by upper(k)) as n from log",
        "select k, row_number() over (partition by k order by g) as n from wide",
        "select k, row_number() over (partition by k order by _source_position) as n from wide",
        "select k, row_number() over (partition by k order by struct(* except (v))) as n from wide",
        "select k, row_number() over (partition by k order by struct(* except (id))) as n from item",
        "select k, row_number() over (partition by k order by g, array_sort(array(id))) as n from item",
        "select k, row_number() over (partition by k order by struct(* except (m), size(m))) as n from wide",
        "select g, row_number() over (order by count(*)) as n from item group by g",
        (
            "select id, x, row_number() over (order by id) as n from item "
            "lateral view explode(array(1, 2)) e as x"
        ),
        (
            "select id, row_number() over (order by id) as n "
            "from (select id, explode(array(1, 2)) as x from item)"
        ),
        (
            "select id, row_number() over (order by id) as n "
            "from (select id, v from item union all select id, w from other)"
        ),
        "select k, g from item union all select k, g from log order by 1 limit 2 offset 1",
        "select k, g from item union all select k, g from log order by g limit 2",
        "select k, p.n from item, lateral (select row_number() over (order by w) as n from other) p",
    ],
)
def test_an_order_that_leaves_rows_equal_is_refused(sql: str) -> None:
    assert len(ties(sql)) == 1, ties(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select k, row_number() over (partition by k order by g, id) as n from item",
        "select k, row_number() over (partition by k order by g desc, struct(*)) as n from item",
        "select k, row_number() over (partition by k order by struct(g, id)) as n from item",
        "select k, row_number() over (partition by k order by struct(* except (v), v)) as n from item",
        "select k, row_number() over (partition by k order by struct(* except (nothing))) as n from log",
        (
            "select k, row_number() over (partition by k "
            "order by struct(* except (m), array_sort(map_entries(m)))) as n from wide"
        ),
        (
            "select k, row_number() over (partition by k "
            "order by struct(* except (m), map_entries(m))) as n from wide"
        ),
        "select k, row_number() over (partition by id order by g) as n from item",
        "select k, lag(v) over w as p from item window w as (partition by k order by g, id)",
        "select k, first_value(g) over (partition by k order by g) as p from item",
        "select k, first_value(upper(k)) over (partition by k order by g) as p from item",
        (
            "select k, rank() over (partition by k order by g) as n, dense_rank() over (order by g) as d "
            "from item"
        ),
        "select k, percent_rank() over (order by g) as n, cume_dist() over (order by g) as d from item",
        "select k, sum(v) over (partition by k order by g) as s from item",
        (
            "select k, sum(v) over (partition by k "
            "order by g range between 3 preceding and current row) as s from item"
        ),
        (
            "select k, max(v) over (partition by k "
            "order by g rows between unbounded preceding and unbounded following) as s from item"
        ),
        (
            "select k, sum(v) over (partition by k "
            "order by g, id rows between 1 preceding and current row) as s from item"
        ),
        "select k, max_by(v, struct(g, v)) as v from item group by k",
        "select k, max_by(v, struct(g, id)) as v from item group by k",
        "select k, max_by(k, g) as v from item group by k",
        "select k, max_by(v, id) over (partition by k) as v from item",
        "select k, listagg(v, ',') within group (order by g, v) as vs from item group by k",
        "select k, listagg(distinct k, ',') within group (order by k) as vs from item group by k",
        "select k, v from item order by g, id limit 3",
        "select k, v from item order by v, k limit 3",
        "select k, v as g from item order by k, g limit 3",
        "select k, v from item order by 2, 1 limit 3",
        "select k, v from item order by all limit 3",
        "select k, g from log order by k, g limit 2",
        "select distinct k from item order by k limit 2",
        "select k, count(*) as n from item group by k order by n desc, k limit 2",
        "select count(*) as n from item order by n limit 1",
        "select g, row_number() over (order by count(*), g) as n from item group by g",
        "select k, g, row_number() over (partition by k order by g) as n from log",
        (
            "select a.k, row_number() over (partition by a.k order by a.id) as n from item a "
            "join other b on a.id = b.id"
        ),
        (
            "select a.k, row_number() over (partition by a.k order by a.id) as n from item a "
            "left join other b on a.id = b.id"
        ),
        (
            "select a.k, row_number() over (partition by a.k order by a.id, b.id) as n from item a "
            "cross join other b"
        ),
        (
            "select a.k, row_number() over (partition by a.k order by a.id, struct(b.*)) as n from item a "
            "join log b on a.k = b.k"
        ),
        (
            "select a.k, row_number() over (partition by a.k order by a.id) as n from item a "
            "left semi join log b on a.k = b.k"
        ),
        "select k, row_number() over (partition by k order by x, struct(*)) as n from wide",
        (
            "with a as (select k, g, sum(v) as n from item group by k, g) "
            "select k, row_number() over (partition by k order by g) as r from a"
        ),
        (
            "with a as (select distinct k, g from wide) "
            "select k, row_number() over (partition by k order by g) as r from a"
        ),
        "select k, row_number() over (order by i) as r from (select id as i, k from item) a",
        "select k, row_number() over (order by i) as r from item as a(i, k, g, v)",
        "select k from item union select k from log order by k limit 2",
        "select k from item union all select k from log order by 1 limit 2 offset 1",
        (
            "select k, x, row_number() over (order by id, x) as n from item "
            "lateral view explode(array(1, 2)) e as x"
        ),
    ],
)
def test_an_order_that_ranks_every_row_or_does_not_need_to_is_taken(sql: str) -> None:
    assert ties(sql) == []


@pytest.mark.parametrize(
    ("sql", "remedy"),
    [
        (
            "select k, row_number() over (partition by k order by g) as n from item",
            "Add `id` to its ORDER BY, or end it with `struct(*)`, the whole row.",
        ),
        (
            "select k, row_number() over (partition by k order by x) as n from wide",
            "End its ORDER BY with `struct(*)`, the whole row.",
        ),
        (
            "select a.k, lag(b.g) over (partition by a.k order by a.id) as n from item a "
            "join log b on a.k = b.k",
            "End its ORDER BY with `struct(b.*)`, the whole row.",
        ),
        (
            "select k, row_number() over (partition by k order by x) as n from mapped",
            "End its ORDER BY with `struct(*)`, the whole row; a map `m` in it cannot be ordered: then with "
            "`struct(* EXCEPT (m), array_sort(map_entries(m)))`.",
        ),
        ("select k, max_by(v, g) as v from item group by k", "Write `max_by(v, struct(g, v))`."),
        (
            "select k, listagg(v) within group (order by g) as v from item group by k",
            "Add `v` to its ORDER BY.",
        ),
        (
            "select g, row_number() over (order by count(*)) as n from item group by g",
            "Add `g` to its ORDER BY.",
        ),
        ("select k, v from item order by k limit 3", "Add `v` to the ORDER BY, or write `ORDER BY ALL`"),
    ],
)
def test_what_to_add_is_said(sql: str, remedy: str) -> None:
    (tie,) = ties(sql)

    assert remedy in tie


JOB = """
jobs:
  - name: firsts
    input_datasets: [property]
    output_dataset: firsts
    incremental: {mode: keyed, key: [tenant_id]}
    sql: select tenant_id, row_number() over (partition by tenant_id order by ORDER) as n from property
"""


def test_check_refuses_an_order_with_ties_and_its_remedy_settles_it(tmp_path: Path) -> None:
    reported = report(tmp_path, PROPERTY + JOB.replace("ORDER", "area"))

    assert slugs(tmp_path, PROPERTY + JOB.replace("ORDER", "area")) == ["order-not-total"]
    assert "rows that its ORDER BY (area) leaves equal come in any order" in reported
    assert (
        "Add `property_id` and `tenant_id` to its ORDER BY" in reported
        or "Add `property_id`, `tenant_id` to its ORDER BY" in reported
    )
    for order in ("area, property_id, tenant_id", "area, property_id", "area, struct(*)"):
        load(tmp_path, PROPERTY + JOB.replace("ORDER", order))
