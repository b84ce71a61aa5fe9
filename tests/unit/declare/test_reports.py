"""Every mistake of a project in one report, as its author reads it."""

import random
from pathlib import Path

import pytest

from strandline.declare import find_project_file, load_project
from strandline.model.errors import ProjectError
from tests.unit.declare.builders import PROPERTY, report, slugs, write

COUNTS = f"""{PROPERTY}
jobs:
  - name: counts
    input_datasets: [property]
    output_dataset: counts
"""


def test_all_mistakes_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    yaml = """\
project: bad
timezone: Asia/Kolkatta
sources:
  events: {file: "data/*.jsonl"}
  exports: {files: "data/*"}
datasets:
  app_sources:
    from: event
    columns:
      id: id
  orders:
    from: exports
jobs:
  - name: totals
    input_datasets: [order]
    output_dataset: totals
    incremental: {mode: keyd}
    sql: select 1
"""

    reported = report(tmp_path, yaml)

    assert (
        reported
        == """\
strandline.yaml:2: there is no time zone `Asia/Kolkatta`.
  Did you mean `Asia/Kolkata`?  [unknown-timezone]
strandline.yaml:4: unknown key `file` in `sources.events`.
  Did you mean `files`?  [unknown-key]
strandline.yaml:5: the ending of `data/*` does not determine a format.
  Add `format: jsonl`, `json`, `csv` or `parquet`.  [unknown-format]
strandline.yaml:8: the dataset `app_sources` is decoded from `event`, which is not a source.
  Did you mean `events`?  [unknown-source]
strandline.yaml:15: job `totals` reads `order`, which is not a dataset.
  Did you mean `orders`?  [unknown-dataset]
strandline.yaml:17: `mode` is `keyd` in `jobs[0].incremental`, which is not a valid value.
  Did you mean `keyed`?  [unknown-value]
strandline.yaml:17: job `totals` is keyed but has no key.
  Add `key: [<columns of the output>]` to `incremental`.  [keyed-without-key]"""
    )


def test_a_record_set_without_ordering_is_told_as_the_style_shows(tmp_path: Path) -> None:
    yaml = PROPERTY.replace(", order_by: [changed_at]", "")

    reported = report(tmp_path, yaml)

    assert (
        reported
        == """\
strandline.yaml:14: record set `property` has a key but no ordering, \
so two facts about one key cannot be ranked.
  Add `order_by: [<column>]` to `property`.  [record-set-without-ordering]"""
    )


def test_an_unproved_relation_is_told_with_the_yaml_to_paste(tmp_path: Path) -> None:
    yaml = (
        PROPERTY
        + """
  rate:
    from: events
    columns: {tenant_id: tenantId, fee: {path: fee, type: bigint}, at: {path: at, type: bigint}}
    record_set: {key: [tenant_id], order_by: [at]}
jobs:
  - name: fees
    input_datasets: [property, rate]
    output_dataset: fees
    incremental: {mode: keyed, key: [tenant_id, property_id]}
    sql: jobs/fees.sql
"""
    )
    sql = (
        "select p.tenant_id, p.property_id, r.fee * p.area as fee\n"
        "from property p join rate r on r.tenant_id = p.tenant_id\n"
    )

    reported = report(tmp_path, yaml, {"jobs/fees.sql": sql})

    assert (
        reported
        == """\
strandline.yaml:24: job `fees` is keyed by (tenant_id, property_id), and how `rate` relates \
to that key is not known \
(`rate`: it has no column `property_id`).
  Declare it under `incremental` (`whole` is always valid; a change in it recomputes everything):
    inputs:
      rate: whole   # or {by: {tenant_id: tenant_id, property_id: <column of rate>}}, \
{via: property, on: [<columns>]}\
  [input-relation-unknown]"""
    )


def test_mistakes_in_sql_files_have_the_line_of_the_sql_file(tmp_path: Path) -> None:
    yaml = COUNTS + "    sql: jobs/counts.sql\n"
    sql = """\
        -- how many
        select tenant_id,
          statsu,
          current_date,
          count(*) as n
        from property
        join propertie using (tenant_id)
        where area > :threshold
        group by tenant_id
        limit 3
        """

    reported = report(tmp_path, yaml, {"jobs/counts.sql": sql})

    assert (
        reported
        == """\
jobs/counts.sql:3: the SQL of job `counts` names `statsu`, which is not a column of its inputs.
  Did you mean `status`?  [unknown-column]
jobs/counts.sql:4: `current_date` reads the wall clock.
  Use `:as_of`, the run's logical time.  [nondeterministic]
jobs/counts.sql:7: the SQL of job `counts` reads `propertie`, which is not among its inputs.
  Did you mean `property`?  [undeclared-input]
jobs/counts.sql:8: the parameter `:threshold` is not in the job's `config`.
  Known parameters: `as_of`.  [unknown-parameter]
jobs/counts.sql:10: `LIMIT` without `ORDER BY` takes whichever rows come first.
  Add `ORDER BY` over columns that rank every row.  [nondeterministic]"""
    )


def test_a_column_that_the_inputs_lack_is_told_with_the_nearest(tmp_path: Path) -> None:
    yaml = (
        COUNTS + "    sql: |\n      select tenant_id, statsu\n      from property\n      where p.area > 3\n"
    )

    reported = report(tmp_path, yaml)

    assert (
        reported
        == """\
strandline.yaml:21: the SQL of job `counts` names `statsu`, which is not a column of its inputs.
  Did you mean `status`?  [unknown-column]
strandline.yaml:23: the SQL of job `counts` names `p.area`, which is not a column of its inputs.
  Did you mean `area`?  [unknown-column]"""
    )


def test_wrong_sql_is_told_where_it_is(tmp_path: Path) -> None:
    yaml = PROPERTY + "jobs:\n  - {name: a, input_datasets: [property], output_dataset: b, sql: jobs/a.sql}\n"

    reported = report(tmp_path, yaml, {"jobs/a.sql": "select tenant_id\nfrom property\nwhere (area >\n"})

    assert reported.startswith("jobs/a.sql:3: the SQL is wrong after `>`")


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("", "strandline.yaml:1: the project file lacks `project`.\n  Add `project:`.  [missing-key]"),
        ("[1, 2]", "strandline.yaml:1: the file contains a list, not a mapping of keys."),
        ("just text", "strandline.yaml:1: the file contains `just text`, not a mapping of keys."),
        (
            "project: 3",
            'strandline.yaml:1: `project` is `3`, not text.\n  Put it in quotes: "3".  [wrong-type]',
        ),
        ("project: x\nsources: [a]", "strandline.yaml:2: `sources` is a list, not a mapping of names."),
        ("project: x\njobs: {a: b}", "strandline.yaml:2: `jobs` is a mapping, not a list"),
        ("project: x\ndatasets: {a: }", "strandline.yaml:2: `datasets.a` is empty, not a mapping."),
        (
            "project: x\ndatasets: {a: {from: b, record_set: {key: id}}}",
            "`datasets.a.record_set.key` is `id`, not a list.\n  Write `[id]`.",
        ),
        (
            "project: x\ndatasets: {a: {from: b, record_set: {key: []}}}",
            "`key` is empty in `datasets.a.record_set`.",
        ),
        (
            "project: x\ndatasets: {a: {from: b, columns: {c: 3}}}",
            '`datasets.a.columns.c` is `3`, not text.\n  Put it in quotes: "3".',
        ),
        (
            "project: x\ndatasets: {a: {from: b, columns: {c: [d]}}}",
            "`datasets.a.columns.c` is a list, not text or a mapping.",
        ),
        ("project: x\nsettings: {workers: 0}", "`workers` is `0` in `settings`."),
        ("project: x\ntimezone: true", "`timezone` is `true`, not text."),
        (
            "project: x\nsources: {a: {files: x.csv, complete: 1}}",
            "`sources.a.complete` is `1`, not true or false.",
        ),
        ("project: x\nfoo: 1", "unknown key `foo`."),
    ],
)
def test_wrong_shapes_are_told_in_plain_words(yaml: str, expected: str, tmp_path: Path) -> None:
    assert expected in report(tmp_path, yaml)


@pytest.mark.parametrize(
    ("entry", "what", "wanted"),
    [
        (
            "sources: {a: {files: x.csv, options: {sep: [1]}}}",
            "`sources.a.options.sep` is a list",
            "text or a number or true or false",
        ),
        (
            "sources: {a: {files: x.csv, options: {int: {str: 1}}}}",
            "`sources.a.options.int` is a mapping",
            "text or a number or true or false",
        ),
        (
            "datasets: {a: {from: b, columns: {k: k}, record_set: {key: [k], order_by: [k]}, "
            "guard: {max_deleted: true}}}\n"
            "sources: {b: {files: x.jsonl}}",
            "`datasets.a.guard.max_deleted` is `true`",
            "text or a number",
        ),
        (
            "settings: {spark: {conf: {a.b: }}}",
            "`settings.spark.conf.a.b` is empty",
            "text or a number or true or false",
        ),
    ],
)
def test_a_value_that_is_of_none_of_several_types_is_told_once(
    entry: str, what: str, wanted: str, tmp_path: Path
) -> None:
    reported = report(tmp_path, f"project: x\n{entry}")

    assert reported == f"strandline.yaml:2: {what}, not {wanted}.\n  Write {wanted}.  [wrong-type]"


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("sources: {live: {kafka: {topic: a}}}", "A Kafka source is not supported by this version yet."),
        ("sources: {a: {postgres: {url: x}}}", "A Postgres source is not supported by this version yet."),
        (
            "sources: {a: {files: x.jsonl, envelope: debezium}}",
            "`envelope` is not supported by this version yet.",
        ),
        (
            "datasets: {a: {key: [b], mirror: {postgres: x}}}",
            "`mirror` is not supported by this version yet.",
        ),
        (
            "sources: {a: {files: 's3a://bucket/*.csv'}}",
            "Files at `s3a://` are not supported by this version yet.",
        ),
    ],
)
def test_what_is_not_due_yet_is_said_once_and_is_no_unknown_key(
    yaml: str, expected: str, tmp_path: Path
) -> None:
    shown = report(tmp_path, f"project: x\n{yaml}\n")

    assert expected in shown
    assert shown.count("\n") == 1


def test_leaning_on_something_that_is_wrong_is_no_second_mistake(tmp_path: Path) -> None:
    yaml = """
project: x
sources:
  live: {kafka: {topic: a}}
  events: {fils: "x.jsonl"}
datasets:
  trades: {from: live, columns: {a: b}}
  orders: {from: events, columns: {a: b}}
jobs:
  - {name: a, input_datasets: [trades], output_dataset: a_out, sql: select * from trades}
  - {name: b, input_datasets: [a_out, orders_facts], output_dataset: b_out,
     sql: select a_out.a from a_out cross join orders_facts}
"""

    assert slugs(tmp_path, yaml) == ["not-yet", "unknown-key"]


def test_a_cycle_is_told_by_name(tmp_path: Path) -> None:
    jobs = """
jobs:
  - {name: a, input_datasets: [c_out, property], output_dataset: a_out,
     sql: select c_out.x from c_out cross join property}
  - {name: b, input_datasets: [a_out], output_dataset: b_out, sql: select * from a_out}
  - {name: c, input_datasets: [b_out], output_dataset: c_out, sql: select * from b_out}
  - {name: d, input_datasets: [d_out], output_dataset: d_out, sql: select * from d_out}
"""

    reported = report(tmp_path, PROPERTY + jobs)

    assert (
        "these outputs depend on each other: `a_out` reads `c_out` reads `b_out` reads `a_out`." in reported
    )
    assert "what writes `d_out` also reads it." in reported


@pytest.mark.parametrize(
    ("yaml", "slug"),
    [
        ("sources: {Register: {files: a.csv}}", "bad-name"),
        ("sources: {a_facts: {files: a.csv}}", "reserved-name"),
        ("sources: {a: {files: a.jsonl}}\ndatasets: {a: {from: a, columns: {b: c}}}", "name-taken"),
        (
            "sources: {a: {files: a.jsonl}}\njobs:\n"
            "  - {name: x, input_datasets: [a], output_dataset: y, sql: select _payload from a}\n"
            "  - {name: y, input_datasets: [a], output_dataset: z, sql: select _payload from a}",
            "name-taken",
        ),
        (
            "sources: {a: {files: a.jsonl}}\njobs:\n"
            "  - {name: x, input_datasets: [a], output_dataset: a, sql: select _payload from a}",
            "name-taken",
        ),
    ],
)
def test_one_name_stands_for_one_thing(yaml: str, slug: str, tmp_path: Path) -> None:
    assert slug in slugs(tmp_path, f"project: x\n{yaml}\n")


def test_the_project_file_is_found_from_a_folder_inside(tmp_path: Path) -> None:
    write(tmp_path, "project: x\n")
    inside = tmp_path / "jobs" / "deep"
    inside.mkdir(parents=True)

    assert find_project_file(inside) == tmp_path / "strandline.yaml"
    assert load_project(inside, {}).folder == str(tmp_path)


def test_no_project_file_is_a_mistake_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="project-not-found"):
        load_project(tmp_path, {})


def test_no_yaml_whatever_ends_in_a_traceback(tmp_path: Path) -> None:
    pieces = [
        "project: x\n",
        "sources:\n",
        "  a: {files: 'd/*.jsonl'}\n",
        "datasets:\n",
        "  b:\n",
        "    from: a\n",
        "    columns: {c: d}\n",
    ]
    pieces += [
        "jobs:\n",
        "  - name: e\n",
        "    sql: select (\n",
        "    incremental: [x]\n",
        "    input_datasets: {b: 1}\n",
        "\t",
        "? ",
        "[",
        "}",
        "&x ",
        "*x",
        "!t ",
    ]
    chance = random.Random(7)

    for _ in range(150):
        text = "".join(chance.choice(pieces) for _ in range(chance.randrange(12)))
        report(tmp_path, text)


def test_a_part_with_two_mistakes_one_of_which_costs_all_of_it_is_told_once_each(tmp_path: Path) -> None:
    job = (
        "    incremental: {mode: partition}\n    partition: {size: ten}\n"
        "    sql: select tenant_id from property\n"
    )

    assert slugs(tmp_path, COUNTS + job) == ["missing-key", "wrong-type"]
