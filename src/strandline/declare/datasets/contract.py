"""The kind of a fact dataset, declared in LANGUAGE's spelling or in the seed's `contract`."""

from dataclasses import dataclass, field

from strandline.declare.yaml_lines import Document
from strandline.model.report import Report

from .spec import ContractSpec, FactDatasetSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A record set, or an event stream with or without identity."""

    is_record_set: bool
    settled: bool = True
    """False if the declaration has two kinds at once, which was reported."""
    where: str = "record_set"
    key_word: str = "key"
    order_word: str = "order_by"
    key: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    deleted: str | None = None
    children: str = "upsert"
    latest_non_null: list[str] = field(default_factory=list)
    identity: list[str] = field(default_factory=list)


def settle_kind(name: str, spec: FactDatasetSpec, document: Document, report: Report) -> Kind:
    """The kind that a dataset's declaration defines. Two at once are a mistake."""
    contract = spec.contract
    kinds = {
        "record_set": spec.record_set is not None,
        "event_stream": spec.event_stream is not None,
        "contract.override_channel": contract is not None and contract.override_channel is not None,
        "contract.is_event_stream": contract is not None and contract.is_event_stream is True,
    }
    declared = [word for word, is_declared in kinds.items() if is_declared]
    if contract is not None:
        _check_contract(name, contract, document, report)
    records = [word for word in declared if word in ("record_set", "contract.override_channel")]
    if records and len(declared) > len(records):
        stream = next(word for word in declared if word not in records)
        what = f"`{name}` is declared as a record set (`{records[0]}`) and as an event stream (`{stream}`)."
        remedy = "Keep one: facts of a record set override each other, those of an event stream do not."
        report.add("two-kinds", what, remedy, document.place("datasets", name, declared[-1].split(".")[0]))
        return Kind(is_record_set=False, settled=False)
    if len(records) == 2:
        what = f"`{name}` has a `record_set` and a `contract`, and both declare its key."
        report.add("two-kinds", what, "Keep `record_set`.", document.place("datasets", name, "contract"))
        return Kind(is_record_set=False, settled=False)
    if spec.record_set is not None:
        record_set = spec.record_set
        return Kind(
            is_record_set=True,
            key=record_set.key,
            order_by=record_set.order_by or [],
            deleted=record_set.deleted,
            children=record_set.children,
            latest_non_null=record_set.latest_non_null,
        )
    if contract is not None and contract.override_channel is not None:
        return Kind(
            is_record_set=True,
            where="contract",
            key_word="override_channel",
            order_word="override_ordering",
            key=_as_list(contract.override_channel),
            order_by=_as_list(contract.override_ordering),
        )
    return Kind(is_record_set=False, identity=spec.event_stream.identity if spec.event_stream else [])


def _check_contract(name: str, contract: ContractSpec, document: Document, report: Report) -> None:
    place = document.place("datasets", name, "contract")
    if contract.is_append_only is False:
        what = f"the contract of `{name}` has `is_append_only: false`, but facts are only ever appended."
        report.add(
            "not-append-only",
            what,
            "Remove it: an update is a new fact, which `override_channel` describes.",
            place,
        )
    if contract.override_ordering is not None and contract.override_channel is None:
        what = f"the contract of `{name}` has `override_ordering` but no `override_channel`."
        report.add("ordering-without-key", what, "Add `override_channel: <key column>`.", place)
    if contract.is_event_stream is False and contract.override_channel is None:
        what = (
            f"the contract of `{name}` has `is_event_stream: false`,"
            " but does not define which facts override each other."
        )
        report.add("record-set-without-key", what, "Add `override_channel` and `override_ordering`.", place)


def _as_list(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)
