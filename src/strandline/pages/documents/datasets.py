"""One dataset: its state, its columns and what it is made of."""

from strandline.app.described import Described

from .status import dataset_document


def described_document(described: Described) -> dict[str, object]:
    node = described.node
    return {
        **dataset_document(described.status, with_partitions=True),
        "columns": dict(described.columns),
        "key": list(node.key),
        "inputs": [input_.dataset for input_ in node.inputs],
        "config": node.config.hash,
    }
