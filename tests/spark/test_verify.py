"""`verify` against a broken engine: it does not judge rows with the code that made them."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.facts import received as facts
from strandline.compute.facts.decode import DERIVED, OUTCOME
from strandline.compute.job import partitioned as partitions
from strandline.ingest.staging import TextWriter
from tests.harness import TestProject

pytestmark = pytest.mark.spark

YAML = """
    project: broken
    sources:
      orders: {files: "orders/*.jsonl"}
      exported: {files: "exports/*.csv", complete: true}
    datasets:
      line:
        from: orders
        explode: lines
        columns: {order: order, n: item.n, v: {path: v, type: int}}
        record_set: {key: [order, n], order_by: [v], children: replace}
      register:
        from: exported
        record_set: {key: [id], order_by: [day]}
    jobs:
      - name: ranges
        input_datasets: [line]
        output_dataset: ranges
        incremental: {mode: partition}
        partition: {column: v, size: 10, final_after: 5}
        sql: select v, `order`, n from line
      - name: at_once
        input_datasets: [line]
        output_dataset: at_once
        incremental: {mode: partition}
        partition: {column: v, size: 10}
        sql: select v, `order`, n from line
"""


def order(name: str, v: int, *lines: str) -> dict[str, object]:
    return {"order": name, "v": v, "lines": [{"n": n} for n in lines]}


def test_what_a_broken_engine_leaves_out_is_found(
    make_project: Callable[[str], TestProject], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(YAML)
    project.lines(
        "orders/1.jsonl",
        order("a", 1, "x", "y"),
        order("b", 2, "x"),
        {"order": "none", "lines": [{"n": "x"}]},
    )
    project.write("exports/1.csv", "id,day\n1,1\n2,1\n")
    project.run()

    # A line, the facts implied by an empty list and by a missing key, and the partitions that are final by
    # now.
    decode_received, read = facts.decode_received, TextWriter.read
    with monkeypatch.context() as broken:

        def without_markers(*arguments: object, **more: object) -> DataFrame:
            return decode_received(*arguments, **more).where(F.col(OUTCOME) != DERIVED)  # type: ignore[arg-type]

        broken.setattr(facts, "decode_received", without_markers)
        broken.setattr(TextWriter, "read", lambda writer, session: read(writer, session).where("place != 4"))
        broken.setattr(partitions, "is_final", lambda *_: False)
        project.lines(
            "orders/2.jsonl",
            order("a", 3),
            order("c", 30, "z"),
            {"order": "none too", "lines": [{"n": "x"}]},
            order("lost", 1),
        )
        project.write("exports/2.csv", "id,day\n1,2\n")
        project.run()

    different = {d.dataset for d in project.verify().datasets if d.result == "different"}
    assert different == {
        "orders",
        "line_facts",
        "register_facts",
        "ranges",
        "at_once",
    }
