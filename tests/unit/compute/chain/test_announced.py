"""Blocks read through delta-rs, whatever their columns are called."""

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from strandline.compute.chain.announced import BlockTable
from strandline.lake.location import Lake
from strandline.model.errors import Place
from strandline.model.project import Chain, Head, HeadRule


def test_names_with_quotes_are_names_like_any_other(tmp_path: Path) -> None:
    chain = Chain(
        name="c",
        place=Place(file="strandline.yaml", line=1),
        blocks="b",
        number='n"x',
        hash='ha"sh',
        parent='pa"rent',
        head=HeadRule(kind=Head.LONGEST),
        order_by=("_source_position",),
        group_by=('gr"oup',),
    )
    position = [{"name": "f", "part": 0, "place": place} for place in (1, 2)]
    rows = {
        'n"x': [1, 2],
        'ha"sh': ["a", "b"],
        'pa"rent': [None, "a"],
        'gr"oup': ["g", "g"],
        "_source_position": position,
    }
    write_deltalake(str(tmp_path / "b_facts"), pa.table(rows))
    table = BlockTable(
        lake=Lake(root=str(tmp_path)), dataset="b_facts", version=0, chain=chain, live_only=False
    )

    assert table.groups() == [("g",)]
    assert table.bounds(("g",)) == (1, 2)
    assert table.hashes(("g",), 1, 2) == {1: "a", 2: "b"}
    assert [block.hash for block in table.blocks(("g",), 1, 2)] == ["a", "b"]
    assert table.count(("g",), 2) == 1
