"""Published data: a city's register as changes and as monthly exports, and samples of a tax system.

DuckDB computes the expected rows from the same files, or their README gives them.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.app.planning import RunRequest
from tests.harness import TestProject, result_of
from tests.spark.counts import assert_conserved, count

pytestmark = [pytest.mark.spark, pytest.mark.real_data]

Make = Callable[[str], TestProject]

FIELDS = ("registration_number", "location_key", "postal_code", "property_type", "ward_number", "ward_name")
CHANGES = """
    project: toronto
    sources:
      changes: {files: "changes/*.parquet"}
      together: {files: "together/*.parquet"}
    datasets:
      register:
        from: changes
        record_set: &ranked {key: [registration_number], order_by: [snapshot_seq], deleted: "op = 'D'"}
      register_441:
        from: changes
        where: snapshot_seq <= 441
        record_set: *ranked
      once:
        from: together
        record_set: *ranked
    jobs:
      - name: wards
        input_datasets: [register]
        output_dataset: wards
        incremental: {mode: keyed, key: [ward_number]}
        sql: >-
          select ward_number, count(*) as n, count(distinct postal_code) as codes from register
          group by ward_number
"""


def replay(file: Path, upto: int = 1 << 40) -> set[tuple[object, ...]]:
    """The register at a version, computed by DuckDB."""
    query = f"""
        select {", ".join(FIELDS)} from (
            select *, row_number() over (partition by registration_number order by snapshot_seq desc) as nth
            from read_parquet('{file}') where snapshot_seq <= {upto})
        where nth = 1 and op <> 'D'"""
    return set(duckdb.execute(query).fetchall())


def deliver(project: TestProject, changes: Path, batches: int) -> None:
    """Deliver the changes in shuffled batches, with a run for each.

    The second batch comes twice, under another name and in another order.
    """
    everything = pq.read_table(changes)
    order = duckdb.execute(
        f"select i from range({everything.num_rows}) t(i) order by hash(i + 17)"
    ).fetchnumpy()["i"]
    (project.folder / "changes").mkdir(exist_ok=True)
    size = -(-everything.num_rows // batches)
    for number in range(batches):
        rows = everything.take(pa.array(order[number * size : (number + 1) * size]))
        pq.write_table(rows, project.folder / f"changes/{(number * 7) % batches:03}.parquet")
        if number == 1:
            again = rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))
            pq.write_table(again, project.folder / "changes/again.parquet")
        if number == batches - 1:
            (project.folder / "together").mkdir(exist_ok=True)
            shutil.copy(changes, project.folder / "together/all.parquet")
        project.run()


def assert_register(project: TestProject, changes: Path) -> None:
    expected = replay(changes)
    assert project.rows("register", *FIELDS) == project.rows("once", *FIELDS) == expected
    assert (len(expected), count(project, "register_441")) == (8_701, 7_873)
    assert project.rows("register_441", *FIELDS) == replay(changes, 441)
    assert project.query("select count(distinct registration_number) from register_facts") == [(19_021,)]
    by_ward: dict[object, list[object]] = {}
    for row in expected:
        by_ward.setdefault(row[4], []).append(row[2])
    assert project.rows("wards") == {(w, len(c), len(set(c) - {None})) for w, c in by_ward.items()}
    counts = assert_conserved(project, "register", "register_441", "once")
    assert counts["once"]["accepted"] == 34_578
    assert counts["register"]["accepted"] == counts["register_441"]["offered"] > 34_578
    project.assert_verified()


def test_a_register_of_883_versions_in_four_shuffled_batches_is_the_register_in_one(
    make_project: Make, shared_data: Path
) -> None:
    changes = shared_data / "2_municipal_records/toronto_str_changes.parquet"
    project = make_project(CHANGES)

    deliver(project, changes, 4)

    assert_register(project, changes)


@pytest.mark.skipif(not os.environ.get("STRANDLINE_SLOW"), reason="set STRANDLINE_SLOW=1: twenty runs")
def test_a_register_of_883_versions_in_twenty_shuffled_batches_is_the_register_in_one(
    make_project: Make, shared_data: Path
) -> None:
    changes = shared_data / "2_municipal_records/toronto_str_changes.parquet"
    project = make_project(CHANGES)

    deliver(project, changes, 20)

    assert_register(project, changes)


EXPORTS = """
    project: toronto
    sources:
      months: {files: "months/*.parquet", complete: true}
    datasets:
      register:
        from: months
        record_set: {key: [registration_number], order_by: [snapshot_seq]}
    jobs:
      - name: wards
        input_datasets: [register]
        output_dataset: wards
        incremental: {mode: keyed, key: [ward_number]}
        sql: select ward_number, count(*) as n from register group by ward_number
"""


def state_at(facts: Iterable[tuple[object, ...]], seq: int) -> set[tuple[object, ...]]:
    """The facts replayed up to a version, which is the content of that version's export."""
    last: dict[object, tuple[object, ...]] = {}
    for fact in sorted(facts, key=lambda f: (f[0], not f[1])):
        if int(str(fact[0])) <= seq:
            last[fact[2]] = fact
    return {fact[2:] for fact in last.values() if not fact[1]}


def test_monthly_exports_in_any_order_agree_with_the_changes_and_an_empty_one_is_stopped(
    make_project: Make, shared_data: Path
) -> None:
    folder = shared_data / "2_municipal_records"
    months, changes = folder / "toronto_str_monthly_snapshots.parquet", folder / "toronto_str_changes.parquet"
    project = make_project(EXPORTS)
    (project.folder / "months").mkdir()

    for batch in ((101,), (423, 10), (304, 216)):
        for seq in batch:
            target = project.folder / f"months/{1000 - seq}.parquet"
            duckdb.sql(
                f"copy (select * from read_parquet('{months}') "
                f"where snapshot_seq = {seq}) to '{target}' (format parquet)"
            )
        project.run()

    assert count(project, "register") == 7_999
    assert project.rows("register", *FIELDS) == replay(changes, 423)
    facts = project.query(f"select snapshot_seq, _deleted, {', '.join(FIELDS)} from register_facts")
    for seq in (10, 101, 216, 304, 423):
        assert state_at(facts, seq) == replay(changes, seq), f"version {seq}"
    counts = assert_conserved(project, "register")["register"]
    assert (counts["accepted"], counts["derived"] > 0) == (8_056 + 8_379 + 8_650 + 8_765 + 7_999, True)
    project.assert_verified()

    # The publisher's empty export: source and facts are kept, readers keep the last state, and each run
    # decides again.
    pq.write_table(
        pq.read_table(project.folder / "months/577.parquet").slice(0, 0), project.folder / "months/zz.parquet"
    )
    for _ in range(2):
        stopped = project.run(ok=False)
        assert stopped.exit_code == 1
        assert str(result_of(stopped, "register").status) == "guarded"
        assert str(result_of(stopped, "wards").status) == "blocked"
        assert count(project, "register") == 7_999
    project.run(RunRequest(accept_guard=("register",)))

    assert (count(project, "register"), count(project, "wards")) == (0, 0)
    assert_conserved(project, "register")


def test_two_details_of_one_tax_head_are_both_owed(make_project: Make, shared_data: Path) -> None:
    """The reassessment did not change `lastModifiedTime`.

    So the order of the source has to rank the two states of the first detail.
    """
    project = make_project(
        """
        project: property_tax
        sources:
          demands: {files: "demands/*.json"}
        datasets:
          detail:
            from: demands
            explode: demandDetails
            columns:
              tenant_id: item.tenantId
              demand_id: item.demandId
              detail_id: item.id
              tax_head: item.taxHeadMasterCode
              owed: {path: item.taxAmount, type: "decimal(18,2)"}
              paid: {path: item.collectionAmount, type: "decimal(18,2)"}
              last_modified_at: {path: item.auditDetails.lastModifiedTime, type: timestamp_ms}
            record_set:
              key: [tenant_id, demand_id, detail_id]
              order_by: [last_modified_at, _source_position]
        jobs:
          - name: outstanding
            input_datasets: [detail]
            output_dataset: outstanding
            incremental: {mode: keyed, key: [tenant_id, demand_id]}
            sql: >-
              select tenant_id, demand_id, sum(owed - paid) as amount from detail
              group by tenant_id, demand_id
        """
    )
    samples = shared_data / "2_municipal_records/digit_samples"
    (project.folder / "demands").mkdir()
    shutil.copy(samples / "pt_demand_details_before.json", project.folder / "demands/1.json")
    project.run()
    assert [str(amount) for (amount,) in project.rows("outstanding", "amount")] == ["0.00"]

    shutil.copy(samples / "pt_demand_details_after.json", project.folder / "demands/2.json")
    project.run()

    assert [str(amount) for (amount,) in project.rows("outstanding", "amount")] == ["150.00"]
    assert project.query("select tax_head, count(*) from detail group by tax_head") == [("PT_TAX", 2)]
    project.assert_verified()
