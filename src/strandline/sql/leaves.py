"""The aggregates in a `select`: where they are in its text, and the text with others in their place.

A `select` is never written again from its tree: sqlglot may write another function (`percentile_approx` for
`percentile_cont`). It is cut at the aggregates and put together again, so Spark reads what the user wrote.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot.tokenizer_core import Token, TokenType

from .spark import SPARK

_OF_TWO_COLUMNS = frozenset(
    """
    corr covar_pop covar_samp max_by min_by regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy
    """.split()  # noqa: SIM905  a list of quoted words is hard to read
)
AGGREGATES = _OF_TWO_COLUMNS.union(
    """
    approx_count_distinct array_agg avg bit_and bit_or bit_xor bool_and bool_or collect_list collect_set
    count count_if earliest every kurtosis latest listagg max mean median min mode percentile
    percentile_cont percentile_disc skewness some std stddev stddev_pop stddev_samp string_agg sum try_avg
    try_sum var_pop var_samp variance
    """.split()  # noqa: SIM905  a list of forty quoted words is hard to read
)
"""The functions of which a `select` may consist. Their value depends on the set of rows alone.

What is left of their order (`collect_list`, `mode`) is refused by the check of determinism, or decided by a
rank (`latest`, `max_by`).
"""
RANKED = frozenset({"latest", "earliest"})
"""They take the row of highest or lowest rank."""
PICKED = RANKED | {"max_by", "min_by"}
"""They take one of several rows, so ties must be decided."""
_MOST_ARGUMENTS = {
    "approx_count_distinct": 2,
    "count": sys.maxsize,
    "earliest": 2,
    "latest": 2,
    "listagg": 2,
    "percentile": 3,
    "string_agg": 2,
}
"""Of functions that take more or fewer. Others take one argument, or two columns."""


def takes_arguments(function: str, number: int) -> bool:
    """Whether an aggregate takes so many arguments."""
    if function in _OF_TWO_COLUMNS:
        return number == 2
    least = {"mode": 0, "percentile": 2}.get(function, 1)
    return least <= number <= _MOST_ARGUMENTS.get(function, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One aggregate as it is written."""

    function: str
    """In lower case."""
    arguments: tuple[str, ...]
    distinct: bool = False
    within: str = ""
    """`WITHIN GROUP (...)`, if it has one."""
    where: str = ""
    """The condition of its own FILTER."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A `select` cut at its aggregates: a text before each, and one after the last."""

    texts: tuple[str, ...]
    leaves: tuple[Leaf, ...]

    def fill(self, write: Callable[[Leaf], str]) -> str:
        """The select with another text in place of each aggregate."""
        written = [write(leaf) for leaf in self.leaves]
        pieces = [piece for pair in zip(self.texts, [*written, ""], strict=True) for piece in pair]
        return "".join(pieces)

    @property
    def only(self) -> Leaf | None:
        """The aggregate, if the select consists of one alone."""
        bare = not any(text.strip() for text in self.texts)
        return self.leaves[0] if len(self.leaves) == 1 and bare else None


@lru_cache(maxsize=2048)
def cut_select(text: str) -> Cut:
    """Cut a select at its outermost aggregates. It has been parsed without a mistake."""
    tokens = list(SPARK.tokenize(text))
    texts, leaves, done, place = [], [], 0, 0
    while place < len(tokens):
        if not _is_call(tokens, place):
            place += 1
            continue
        leaf, after = _read_leaf(text, tokens, place)
        texts.append(text[done : tokens[place].start])
        leaves.append(leaf)
        done, place = tokens[after - 1].end + 1, after
    return Cut(texts=(*texts, text[done:]), leaves=tuple(leaves))


def _is_call(tokens: Sequence[Token], place: int) -> bool:
    return (
        tokens[place].text.lower() in AGGREGATES
        and tokens[place].token_type is not TokenType.STRING
        and place + 1 < len(tokens)
        and tokens[place + 1].token_type is TokenType.L_PAREN
        and (place == 0 or tokens[place - 1].token_type is not TokenType.DOT)
    )


def _read_leaf(text: str, tokens: Sequence[Token], place: int) -> tuple[Leaf, int]:
    """The aggregate that begins at a place, and the place after it."""
    close = _find_close(tokens, place + 1)
    inside = tokens[place + 2 : close]
    distinct = bool(inside) and inside[0].token_type is TokenType.DISTINCT
    arguments = _split(text, inside[1:] if distinct else inside)
    after, within, where = close + 1, "", ""
    if _words(tokens, after, 2) == ["within", "group"]:
        end = _find_close(tokens, after + 2)
        within = text[tokens[after].start : tokens[end].end + 1]
        after = end + 1
    if _words(tokens, after, 1) == ["filter"] and after + 1 < len(tokens):
        end = _find_close(tokens, after + 1)
        where = text[tokens[after + 3].start : tokens[end - 1].end + 1]
        after = end + 1
    function = tokens[place].text.lower()
    return Leaf(function=function, arguments=arguments, distinct=distinct, within=within, where=where), after


def _words(tokens: Sequence[Token], place: int, count: int) -> list[str]:
    return [token.text.lower() for token in tokens[place : place + count]]


def _find_close(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += tokens[place].token_type is TokenType.L_PAREN
        depth -= tokens[place].token_type is TokenType.R_PAREN
        if not depth:
            return place
    raise ValueError("a parenthesis is not closed")


def _split(text: str, tokens: Sequence[Token]) -> tuple[str, ...]:
    """The arguments of a call, separated by commas that no bracket contains."""
    starts, depth = [0], 0
    for place, token in enumerate(tokens):
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
        if token.token_type is TokenType.COMMA and not depth:
            starts.append(place + 1)
    parts = [tokens[a:b] for a, b in zip(starts, [*(s - 1 for s in starts[1:]), len(tokens)], strict=True)]
    return tuple(text[part[0].start : part[-1].end + 1] for part in parts if part)
