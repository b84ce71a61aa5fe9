"""Chains, and the datasets that follow them."""

from dataclasses import replace

from strandline.declare.names import lowered
from strandline.declare.yaml_lines import Document
from strandline.model.columns import POSITION
from strandline.model.project import Chain, Head, HeadRule
from strandline.model.report import Report, find_nearest, suggest
from strandline.sql.known_columns import Known

from .spec import ChainSpec, LastSpec, MostSpec, MostSummedSpec

_NAME_PARENT = "Name the column that contains the hash of the previous block."


def make_chain(
    name: str, spec: ChainSpec, known: Known, document: Document, report: Report
) -> tuple[Chain, bool]:
    """The chain, and whether its blocks have every column that it names. The parent must be a usable link."""
    place = document.place("chains", name)
    chain = Chain(
        name=name,
        place=place,
        blocks=spec.from_,
        number=spec.number.lower(),
        hash=spec.hash.lower(),
        parent=spec.parent.lower(),
        head=_head(spec),
        order_by=lowered(spec.order_by) or (POSITION,),
        group_by=lowered(spec.group_by),
        anchor=spec.anchor,
    )
    named = {
        "number": (chain.number,),
        "hash": (chain.hash,),
        "parent": (chain.parent,),
        "head": (chain.head.column,) if chain.head.column else (),
        "order_by": tuple(c for c in chain.order_by if c != POSITION),
        "group_by": chain.group_by,
    }
    for word, columns in named.items():
        for column in (c for c in columns if not known.may_have(c)):
            what = (
                f"`{word}` of the chain `{name}` names `{column}`, which is not a column of `{spec.from_}`."
            )
            report.add(
                "unknown-column",
                what,
                suggest(column, known.names or (), "columns"),
                document.place("chains", name, word),
            )
    _check_link(name, chain, known, document, report)
    _check_number(name, chain, known, document, report)
    _check_weight(name, chain, known, document, report)
    return _mended(chain, known), all(
        known.may_have(column) for columns in named.values() for column in columns
    )


def _mended(chain: Chain, known: Known) -> Chain:
    """The chain with the nearest column instead of each one that does not exist and was reported."""

    def meant(column: str) -> str:
        return column if known.may_have(column) else find_nearest(column, known.names or ()) or column

    return replace(
        chain,
        number=meant(chain.number),
        hash=meant(chain.hash),
        parent=meant(chain.parent),
        group_by=tuple(map(meant, chain.group_by)),
    )


def _check_link(name: str, chain: Chain, known: Known, document: Document, report: Report) -> None:
    """`number`, `hash` and `parent` must be three different columns."""
    column_by_word = {"number": chain.number, "hash": chain.hash, "parent": chain.parent}
    remedy_by_word = {"hash": "Name the column that contains the block's own hash.", "parent": _NAME_PARENT}
    for word, other in (("parent", "hash"), ("parent", "number"), ("hash", "number")):
        column = column_by_word[word]
        if column == column_by_word[other] and known.may_have(column):
            what = (
                f"the chain `{name}` has no usable parent link: `{word}` is `{column}`,"
                f" which is also its `{other}`."
            )
            report.add("chain-parent", what, remedy_by_word[word], document.place("chains", name, word))
            return


def _check_number(name: str, chain: Chain, known: Known, document: Document, report: Report) -> None:
    stored = known.type_of(chain.number)
    if stored is not None and stored not in ("int", "bigint") and known.may_have(chain.number):
        what = f"`number` of the chain `{name}` is `{chain.number}`, which is {stored}, not a whole number."
        report.add(
            "chain-number", what, _type_it(chain, chain.number), document.place("chains", name, "number")
        )


def _check_weight(name: str, chain: Chain, known: Known, document: Document, report: Report) -> None:
    """The weight of a head must be a number: as text, 9 would be more than 10."""
    column = chain.head.column
    if (
        chain.head.kind in (Head.MOST, Head.MOST_SUMMED)
        and column
        and known.type_of(column) == "string"
        and known.may_have(column)
    ):
        what = f"`head` of the chain `{name}` uses `{column}`, which is text, not a number."
        report.add("chain-weight", what, _type_it(chain, column), document.place("chains", name, "head"))


def _type_it(chain: Chain, column: str) -> str:
    return (
        f"Give it a type under `columns:` of `{chain.blocks}`: `{column}: {{type: bigint}}`,"
        " beside its `path` if it has one."
    )


def _head(spec: ChainSpec) -> HeadRule:
    match spec.head:
        case MostSpec(most=column):
            return HeadRule(kind=Head.MOST, column=column.lower())
        case MostSummedSpec(most_summed=column):
            return HeadRule(kind=Head.MOST_SUMMED, column=column.lower())
        case LastSpec(last=column):
            return HeadRule(kind=Head.LAST, column=column.lower())
        case _:
            return HeadRule(kind=Head.LONGEST)
