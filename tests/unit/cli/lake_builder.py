"""A lake as runs would have left it, written by delta-rs with the metadata of commits.

The catalog may or may not know of each commit.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from strandline.app.init import init
from strandline.catalog import Catalog, acquire_lease, open_catalog, record_commit, release_lease
from strandline.cli import main
from strandline.declare import load_project
from strandline.lake.log import read_entries
from strandline.model.commits import BuiltPartition, CommitMetadata, Invalidation, Operation, WrittenConfig
from strandline.model.condition_json import from_row_filter
from strandline.model.files import FileRead
from strandline.model.metadata import to_json
from strandline.model.plan import Cursor
from strandline.model.project import FactDataset, FileSource, Job, Snapshot
from strandline.model.scope import NOTHING, Rows
from strandline.model.traits import Recount

KINDS = {
    "order_events": FileSource.kind,
    "orders_facts": FactDataset.kind,
    "orders": Snapshot.kind,
    "customer_totals": Job.kind,
}
INPUTS = {"orders_facts": "order_events", "orders": "orders_facts", "customer_totals": "orders"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The project of `strandline init`, with tables that the test writes."""

    folder: Path

    @property
    def address(self) -> str:
        return f"sqlite:///{self.catalog_file}"

    @property
    def catalog_file(self) -> Path:
        return self.folder / ".strandline" / "catalog.db"

    def table(self, dataset: str) -> Path:
        return self.folder / ".strandline" / "lake" / dataset

    def log(self, dataset: str, version: int) -> Path:
        return self.table(dataset) / "_delta_log" / f"{version:020}.json"

    def files(self, dataset: str) -> list[Path]:
        return sorted(self.table(dataset).glob("*.parquet"))

    def call(self, *words: str) -> int:
        return main([*words, "--project", str(self.folder)])

    def commit(
        self,
        dataset: str,
        *,
        recorded: bool = True,
        rows: int = 3,
        invalidations: tuple[Invalidation, ...] = (),
        **more: object,
    ) -> int:
        """One commit of ours: take the lease, write and, by default, record. Returns its version."""
        catalog = open_catalog(self.address)
        uri = str(self.table(dataset))
        there = DeltaTable.is_deltatable(uri)
        token = (DeltaTable(uri).transaction_version(dataset) or 0) if there else 0
        lease = acquire_lease(catalog, dataset, f"{socket.gethostname()}:1", 60, token, True)
        metadata = self._metadata(dataset, lease.token, invalidations, more)
        properties = CommitProperties(
            custom_metadata={"userMetadata": to_json(metadata)},
            app_transactions=[Transaction(dataset, lease.token)],
        )
        data = pa.table({"id": pa.array(range(rows), pa.int64()), "name": [f"n{i}" for i in range(rows)]})
        write_deltalake(uri, data, mode="append", commit_properties=properties)
        version = DeltaTable(uri).version()
        if recorded:
            self._record(catalog, dataset, lease, version)
        else:
            release_lease(catalog, lease)
        catalog.close()
        return version

    def _metadata(
        self, dataset: str, token: int, invalidations: tuple[Invalidation, ...], more: Mapping[str, object]
    ) -> CommitMetadata:
        source = INPUTS.get(dataset)
        inputs = {}
        if source:
            table = DeltaTable(str(self.table(source)))
            inputs[source] = Cursor(table_id=str(table.metadata().id), version=table.version())
        config = load_project(self.folder, {}).get(dataset).config
        file = FileRead(
            path=f"data/{token}.jsonl", revision=0, bytes=10, rows=3, digest="d", size=10, modified_ns=5
        )
        return CommitMetadata(
            run="run-1",
            task=f"run-1/{dataset}/{token}",
            node=dataset,
            token=token,
            operation=Operation.APPEND,
            inputs=inputs,
            scope=NOTHING,
            cause="new_input",
            config=WrittenConfig(hash=config.hash, parts=config.parts),
            whole=False,
            as_of="2024-01-01T00:00:00+00:00",
            counts={"accepted": 3},
            files=() if source else (file,),
            rows=3 * token,
            partitions=(BuiltPartition(partition_key=f"p{token}", rows=3),)
            if dataset == "customer_totals"
            else (),
            invalidations=invalidations,
            **more,  # type: ignore[arg-type]
        )

    def _record(self, catalog: Catalog, dataset: str, lease: object, version: int) -> None:
        uri = str(self.table(dataset))
        entry = next(iter(read_entries(uri, version - 1)))
        record = entry.record(str(DeltaTable(uri).metadata().id))
        assert record is not None
        size = sum(DeltaTable(uri).get_add_actions(flatten=True).column("size_bytes").to_pylist())
        readers = tuple(
            name for name, given in INPUTS.items() if given == dataset and KINDS[name] == Job.kind
        )
        record_commit(
            catalog,
            lease,  # type: ignore[arg-type]
            (record,),
            kind=KINDS[dataset],
            recount=Recount.NEVER,
            location=uri,
            row_count=record.metadata.rows,
            bytes_=size,
            release=True,
            readers=readers,
        )


def write_lake(folder: Path) -> Written:
    """Two commits on every table, as two runs over two files would leave them.

    They contain an invalidation that has been processed.
    """
    init(folder)
    lake = Written(folder=folder)
    invalidation = Invalidation(
        id="i-1", scope=Rows(where=from_row_filter({"id": {"_eq": 1}})), reason="checked"
    )
    for nth in range(2):
        for dataset in KINDS:
            lake.commit(dataset, invalidations=(invalidation,) if dataset == "orders" and nth else ())
    return lake
