"""The result of a verification, dataset by dataset."""

from strandline.model.json_values import recorded_instant
from strandline.model.verified import VerifiedDataset, VerifyOutcome


def verify_document(outcome: VerifyOutcome) -> dict[str, object]:
    return {"datasets": [_dataset(d) for d in outcome.datasets]}


def _dataset(verified: VerifiedDataset) -> dict[str, object]:
    return {
        "dataset": verified.dataset,
        "result": verified.result,
        "equal": verified.equal,
        "compared_rows": verified.compared_rows,
        "differing_rows": verified.differing_rows,
        "stale_rows": verified.stale_rows,
        "kept_rows": verified.kept_rows,
        "input_versions": dict(verified.input_versions),
        "as_of": recorded_instant(verified.as_of),
        "examples": list(verified.examples),
        **({"reason": verified.reason} if verified.reason else {}),
        **(_keys_left_out(verified) if verified.failed_keys is not None else {}),
    }


def _keys_left_out(verified: VerifiedDataset) -> dict[str, int]:
    return {
        "failed_keys": verified.failed_keys or 0,
        "reprocessing_keys": verified.reprocessing_keys or 0,
    }
