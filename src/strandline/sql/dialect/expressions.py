"""One expression of a query, rewritten so that DataFusion gives Spark's answer."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from .aggregates import AGGREGATES, NEIGHBOURS, RANKING, Around, aggregate
from .building import Typed, call, canonical, choose, null_boolean, replace_arguments
from .casts import cast, literal_number
from .functions import APPROXIMATE, FUNCTIONS, as_texts, concatenated, unify
from .functions import field as time_field
from .functions import substring as spark_substring
from .notes import NOT_COMPARED, Note, floating_order, function_note
from .operators import arithmetic, as_compared, comparable, comparison, shifted
from .parse import expression_text
from .scope import Scope
from .types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    SparkType,
    decimal,
    widest,
)

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TIME_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_NAMED_TYPES = {
    "TINYINT": TINYINT, "SMALLINT": SMALLINT, "INT": INT, "BIGINT": BIGINT, "DOUBLE": DOUBLE,
    "TEXT": STRING, "VARCHAR": STRING,
    "BOOLEAN": BOOLEAN, "DATE": DATE, "TIMESTAMP": TIMESTAMP,
}  # fmt: skip
_UNKNOWN_TYPE = "of values whose types are not known here or not compared with Spark's"
_DIVISION = (
    "integers divide to integers, decimals round and scale otherwise, floating-point numbers divide by zero"
)
_NEGATED_DIGITS = 34
_COMPARED = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_SYMBOLS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


@dataclass(slots=True)
class Expressions:
    """Rewrites expressions and collects notes.

    `subquery` rewrites a query inside an expression and returns the type of its only column.
    """

    subquery: Callable[[exp.Expression, Scope], SparkType | None]
    notes: list[Note] = field(default_factory=list)

    def note(self, construct: str, difference: str = NOT_COMPARED) -> None:
        self.notes.append(Note(construct, difference))

    def build(self, node: exp.Expression, scope: Scope) -> Typed:
        for kinds, method in _METHODS.items():
            if isinstance(node, kinds):
                return method(self, node, scope)
        return self._unknown(node, scope, type(node).__name__.upper())

    def condition(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        """A condition that selects rows.

        DataFusion takes `p AND NULL` for `p` there, and `IS TRUE` prevents that.
        """
        if isinstance(node, exp.And):
            return exp.And(
                this=self.condition(node.this, scope), expression=self.condition(node.expression, scope)
            )
        if isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
            return exp.Paren(this=self.condition(node.this, scope))
        built = self.build(node, scope).node
        if _cannot_be_constant(built) or built.find(exp.Select):
            return built
        return exp.Is(this=exp.Paren(this=built.copy()), expression=exp.Boolean(this=True))

    def ordered(self, order: exp.Expression, scope: Scope) -> exp.Expression:
        """ORDER BY. The position of NULLs is written out when the tree is."""
        return replace_arguments(
            order, expressions=[self._ordered(item, scope) for item in order.expressions]
        )

    def _ordered(self, item: exp.Expression, scope: Scope) -> exp.Expression:
        value = self.build(item.this, scope)
        if value.type is None or not value.type.is_scalar:
            self.note("ORDER BY", _UNKNOWN_TYPE)
        return replace_arguments(item, this=canonical(value).copy())

    def _unknown(
        self, node: exp.Expression, scope: Scope, construct: str, difference: str = NOT_COMPARED
    ) -> Typed:
        self.note(construct, difference)
        return Typed(self._with_built_children(node, scope), None)

    def _with_built_children(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        """A node as it was written, around rewritten arguments."""
        copied = node.copy()
        for name, value in node.args.items():
            if isinstance(value, list):
                copied.set(name, [self._child(v, scope) for v in value])
            else:
                copied.set(name, self._child(value, scope))
        return copied

    def _child(self, value: Any, scope: Scope) -> Any:
        if isinstance(value, exp.Identifier | exp.DataType | exp.Var | exp.Star) or not isinstance(
            value, exp.Expression
        ):
            return value.copy() if isinstance(value, exp.Expression) else value
        if isinstance(value, exp.Order):
            return self.ordered(value, scope)
        return self.build(value, scope).node.copy()

    def _column(self, node: Any, scope: Scope) -> Typed:
        if isinstance(node.this, exp.Star):
            return Typed(node, None)
        if node.name.lower() in FUNCTIONS and not node.table and not node.this.args.get("quoted"):
            known, kind = scope.find(node)
            return (
                Typed(known, kind) if kind is not None else self._call(exp.Anonymous(this=node.name), scope)
            )
        if (
            node.name.lower() in ("current_timestamp", "current_time", "localtime", "localtimestamp")
            and not node.table
        ):
            self.notes.append(function_note("current_timestamp"))
        return Typed(*scope.find(node))

    def _literal(self, node: Any, scope: Scope) -> Typed:
        if not node.is_string:
            return literal_number(node.name)
        if "\\" in node.name:
            self.note("'\\'", "a backslash in a text stands for itself, in Spark it begins an escape")
        return Typed(node, STRING, node.name)

    def _null(self, node: Any, scope: Scope) -> Typed:
        return Typed(node, VOID)

    def _boolean(self, node: Any, scope: Scope) -> Typed:
        return Typed(node, BOOLEAN)

    def _negative(self, node: Any, scope: Scope) -> Typed:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return literal_number(node.this.name, negative=True)
        value = self.build(node.this, scope)
        if value.type is None or not value.type.is_number:
            return self._unknown(node, scope, "-", _UNKNOWN_TYPE)
        if value.type.is_decimal and value.type.precision > _NEGATED_DIGITS:
            self.note("-", f"Spark rounds a decimal whose sign it changes to {_NEGATED_DIGITS} digits")
        if value.type.is_integer and (negated := arithmetic(exp.Sub, literal_number("0"), value)):
            return Typed(negated.node, value.type)
        return Typed(exp.Neg(this=exp.Paren(this=value.node.copy())), value.type)

    def _paren(self, node: Any, scope: Scope) -> Typed:
        value = self.build(node.this, scope)
        return Typed(exp.Paren(this=value.node.copy()), value.type, value.literal)

    def _logic(self, node: Any, scope: Scope) -> Typed:
        left, right = self.build(node.this, scope), self.build(node.expression, scope)
        for side in (left, right):
            if side.type not in (BOOLEAN, VOID):
                self.note(type(node).__name__.upper(), _UNKNOWN_TYPE)
        return Typed(replace_arguments(node, this=left.node.copy(), expression=right.node.copy()), BOOLEAN)

    def _not(self, node: Any, scope: Scope) -> Typed:
        value = self.build(node.this, scope)
        if value.type not in (BOOLEAN, VOID):
            self.note("NOT", _UNKNOWN_TYPE)
        return Typed(exp.Not(this=exp.Paren(this=value.node.copy())), BOOLEAN)

    def _is(self, node: Any, scope: Scope) -> Typed:
        value = self.build(node.this, scope)
        return Typed(replace_arguments(node, this=value.node.copy()), BOOLEAN)

    def _arithmetic(self, node: Any, scope: Scope) -> Typed:
        left, right = self.build(node.this, scope), self.build(node.expression, scope)
        built = arithmetic(type(node), left, right) or shifted(type(node), left, right)
        if built is None:
            symbol = _SYMBOLS[type(node)]
            dates = left.type == right.type == DATE
            self.note(
                symbol,
                "two dates apart are a number of days, in Spark an interval"
                if dates
                else _DIVISION
                if symbol == "/"
                else _UNKNOWN_TYPE,
            )
            kind = left.type if left.type in (DATE, TIMESTAMP) and right.type == INTERVAL else None
            return Typed(replace_arguments(node, this=left.node.copy(), expression=right.node.copy()), kind)
        return built

    def _comparison(self, node: Any, scope: Scope) -> Typed:
        left, right = self.build(node.this, scope), self.build(node.expression, scope)
        built = comparison(type(node), left, right)
        if built is None:
            self.note(_text_of_operator(node), _UNKNOWN_TYPE)
            return Typed(
                replace_arguments(node, this=left.node.copy(), expression=right.node.copy()), BOOLEAN
            )
        return built

    def _between(self, node: Any, scope: Scope) -> Typed:
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return self.build(exp.Paren(this=exp.And(this=low, expression=high)), scope)

    def _in(self, node: Any, scope: Scope) -> Typed:
        value = self.build(node.this, scope)
        if query := node.args.get("query"):
            kind = self.subquery(query, scope)
            if value.type is None or kind is None or value.type != kind or kind == DOUBLE:
                self.note("IN", _UNKNOWN_TYPE)
            return Typed(replace_arguments(node, this=value.node.copy()), BOOLEAN)
        items = [self.build(item, scope) for item in node.expressions]
        known = [item for item in items if item.type != VOID]
        common: SparkType | None = value.type
        for item in known:
            both = comparable(Typed(value.node, common, value.literal), item) if common is not None else None
            common = both
        nodes = [as_compared(item, common) if common is not None else None for item in (value, *known)]
        if common is None or any(n is None for n in nodes):
            self.note("IN", _UNKNOWN_TYPE)
            listed = [item.node.copy() for item in items]
            return Typed(replace_arguments(node, this=value.node.copy(), expressions=listed), BOOLEAN)
        if not known:
            return Typed(null_boolean(), BOOLEAN)
        first, *others = (n.copy() for n in nodes if n is not None)
        within = exp.Paren(this=_among(first, others, all(item.literal is not None for item in known)))
        if len(known) < len(items):  # there is a NULL among them, so absence is not known
            within = exp.Paren(this=exp.Or(this=within, expression=null_boolean()))
        return Typed(within, BOOLEAN)

    def _like(self, node: Any, scope: Scope) -> Typed:
        left, right = self.build(node.this, scope), self.build(node.expression, scope)
        if left.type != STRING or not isinstance(right.literal, str) or "\\" in right.literal:
            self.note("LIKE", "the pattern is not a plain text")
        lower = isinstance(node, exp.ILike)
        sides = [call("lower", side.node) if lower else side.node.copy() for side in (left, right)]
        like = exp.Paren(this=exp.Like(this=sides[0], expression=sides[1]))
        return Typed(exp.Not(this=like) if node.args.get("negate") else like, BOOLEAN)

    def _concatenation(self, node: Any, scope: Scope) -> Typed:
        sides = [self.build(node.this, scope), self.build(node.expression, scope)]
        built = concatenated(sides) if STRING in (sides[0].type, sides[1].type) else None
        if built is None or as_texts(sides) is None:
            self.note("||", "a value is not written as text as Spark writes it")
            return Typed(
                replace_arguments(node, this=sides[0].node.copy(), expression=sides[1].node.copy()), STRING
            )
        return built

    def _cast(self, node: Any, scope: Scope) -> Typed:
        value, target = self.build(node.this, scope), _named_type(node.args["to"])
        strict = not isinstance(node, exp.TryCast)
        built = cast(value, target, strict=strict) if target is not None else None
        if built is None or target is None:
            spelt = expression_text(node.args["to"])
            self.note(f"CAST(... AS {spelt})", _cast_difference(value.type, target))
            return Typed(replace_arguments(node, this=value.node.copy()), target)
        return Typed(built, target)

    def _case(self, node: Any, scope: Scope) -> Typed:
        subject = node.args.get("this")
        tests, results = [], []
        for branch in node.args["ifs"]:
            test = (
                exp.EQ(this=subject.copy(), expression=branch.this.copy())
                if subject is not None
                else branch.this
            )
            tests.append(self.build(test, scope).node)
            results.append(self.build(branch.args["true"], scope))
        otherwise = node.args.get("default")
        values = [*results, self.build(otherwise, scope)] if otherwise is not None else results
        unified = unify(values)
        if unified is None:
            same = {v.type for v in values if v.type != VOID}
            if len(same) != 1 or None in same:
                self.note("CASE", "its branches " + _UNKNOWN_TYPE.removeprefix("of "))
            nodes, kind = [v.node for v in values], values[0].type
        else:
            nodes, kind = unified
        pairs = list(zip(tests, nodes, strict=False))
        return Typed(choose(*pairs, otherwise=nodes[-1] if otherwise is not None else None), kind)

    def _interval(self, node: Any, scope: Scope) -> Typed:
        unit = node.args.get("unit")
        spelt = unit.name.lower().removesuffix("s") if unit is not None else ""
        whole = isinstance(node.this, exp.Literal) and re.fullmatch(r"-?\d{1,6}", node.this.name)
        if not whole or spelt not in _TIME_UNITS:
            self.note("INTERVAL", "an interval of this form is not compared with Spark's")
            return Typed(node, INTERVAL)
        return Typed(node, INTERVAL, spelt)

    def _extract(self, node: Any, scope: Scope) -> Typed:
        value = self.build(node.expression, scope)
        built = time_field(node.this.name, value)
        if built is None:
            self.note("EXTRACT", f"the field {node.this.name.upper()} is not compared with Spark's")
            return Typed(replace_arguments(node, expression=value.node.copy()), None)
        return built

    def _substring(self, node: Any, scope: Scope) -> Typed:
        parts = [node.this, node.args.get("start") or exp.Literal.number(1), node.args.get("length")]
        values = [self.build(part, scope) for part in parts if part is not None]
        return self._called("substring", values, spark_substring(values))

    def _trim(self, node: Any, scope: Scope) -> Typed:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            str(node.args.get("position") or "").upper(), "btrim"
        )
        values = [
            self.build(part, scope) for part in (node.this, node.args.get("expression")) if part is not None
        ]
        if any(v.type != STRING for v in values):
            self.notes.append(function_note("trim"))
        return Typed(call(name, *(v.node for v in values)), STRING)

    def _position(self, node: Any, scope: Scope) -> Typed:
        values = [self.build(part, scope) for part in (node.this, node.args["substr"])]
        return self._called("strpos", values, FUNCTIONS["position"](values))

    def _exists(self, node: Any, scope: Scope) -> Typed:
        self.subquery(node.this, scope)
        return Typed(node, BOOLEAN)

    def _scalar(self, node: Any, scope: Scope) -> Typed:
        return Typed(node, self.subquery(node, scope))

    def _call(self, node: Any, scope: Scope, around: Around | None = None) -> Typed:
        name = str(node.this).lower()
        if name in AGGREGATES:
            return self._aggregate(node, name, scope, around or (lambda inner: inner))
        if around is not None:
            return self._windowed(node, name, scope, around)
        if any(
            isinstance(a, exp.Star | exp.Order | exp.Distinct | exp.IgnoreNulls) for a in node.expressions
        ):
            self.notes.append(function_note(name))
            return Typed(self._with_built_children(node, scope), None)
        values = [self.build(argument, scope) for argument in node.expressions]
        if name in APPROXIMATE and (built := APPROXIMATE[name](values)):
            self.notes.append(floating_order(name))
            return built
        function = FUNCTIONS.get(name)
        return self._called(str(node.this), values, function(values) if function else None)

    def _called(self, name: str, values: list[Typed], built: Typed | None) -> Typed:
        if built is None:
            self.notes.append(function_note(name.lower()))
            return Typed(call(name, *(v.node for v in values)), None)
        return built

    def _aggregate(self, node: Any, name: str, scope: Scope, around: Around) -> Typed:
        arguments = list(node.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = list(arguments[0].expressions)
        if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return Typed(around(node.copy()), BIGINT)
        values = [
            self.build(argument, scope) for argument in arguments if not isinstance(argument, exp.Order)
        ]
        built = aggregate(name, values, distinct, around) if len(values) == len(arguments) else None
        if built is None:
            self.notes.append(function_note(name))
            return Typed(around(self._with_built_children(node, scope)), None)
        self.notes.extend(built.notes)
        return built.value

    def _windowed(self, node: Any, name: str, scope: Scope, around: Around) -> Typed:
        """A function that only makes sense over a window, or one that is not known to be equal."""
        values = [
            self.build(a.this if isinstance(a, exp.IgnoreNulls) else a, scope) for a in node.expressions
        ]
        rebuilt = (
            self._with_built_children(node, scope)
            if node.find(exp.IgnoreNulls)
            else call(str(node.this), *(v.node for v in values))
        )
        if name in RANKING:
            return Typed(around(rebuilt), RANKING[name])
        kind = values[0].type if values else None
        fits = len(values) < 3 or (
            kind is not None and values[2].type is not None and widest(kind, values[2].type) == kind
        )
        if name not in NEIGHBOURS or kind is None or not fits:
            self.notes.append(function_note(name))
            return Typed(around(rebuilt), None)
        return Typed(around(rebuilt), kind)

    def named_window(self, node: Any, scope: Scope) -> exp.Expression:
        """`WINDOW w AS (...)`."""
        partition = [self.build(p, scope).node.copy() for p in node.args.get("partition_by") or []]
        order = self.ordered(node.args["order"], scope) if node.args.get("order") else None
        self._frame(node.args.get("spec"))
        return replace_arguments(node, partition_by=partition, order=order)

    def _window(self, node: Any, scope: Scope) -> Typed:
        window = self.named_window(node, scope)
        return self._around(node.this, scope, lambda inner: replace_arguments(window, this=inner.copy()))

    def _frame(self, spec: Any) -> None:
        """RANGE with a distance is left to DataFusion, with a note."""
        if spec is not None and str(spec.args.get("kind")).upper() == "RANGE":
            ends = (spec.args.get("start"), spec.args.get("end"))
            if any(isinstance(end, exp.Expression) for end in ends):
                self.note("RANGE BETWEEN", "a distance between values " + NOT_COMPARED)
        elif spec is not None and str(spec.args.get("kind")).upper() not in ("ROWS", "NONE"):
            self.note("GROUPS BETWEEN")

    def _filter(self, node: Any, scope: Scope) -> Typed:
        return self._around(node, scope, lambda inner: inner)

    def _around(self, node: Any, scope: Scope, around: Around) -> Typed:
        """The part before OVER: a call, perhaps with FILTER or IGNORE NULLS around it."""
        if isinstance(node, exp.Filter):
            condition = self.condition(node.expression.this, scope)

            def filtered(inner: exp.Expression) -> exp.Expression:
                return around(exp.Filter(this=inner.copy(), expression=exp.Where(this=condition.copy())))

            return self._around(node.this, scope, filtered)
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            return self._around(node.this, scope, lambda inner: around(type(node)(this=inner.copy())))
        if isinstance(node, exp.Anonymous):
            return self._call(node, scope, around)
        return Typed(around(self._unknown(node, scope, type(node).__name__.upper()).node), None)

    def _within_group(self, node: Any, scope: Scope) -> Typed:
        inner = node.this
        self.notes.append(
            function_note(str(inner.this).lower() if isinstance(inner, exp.Anonymous) else "WITHIN GROUP")
        )
        return Typed(self._with_built_children_of_group(node, scope), None)

    def _with_built_children_of_group(self, node: Any, scope: Scope) -> exp.Expression:
        return replace_arguments(node, expression=self.ordered(node.expression, scope))


_METHODS: Mapping[tuple[type[exp.Expression], ...], Callable[[Expressions, Any, Scope], Typed]] = {
    (exp.Column,): Expressions._column,
    (exp.Literal,): Expressions._literal,
    (exp.Null,): Expressions._null,
    (exp.Boolean,): Expressions._boolean,
    (exp.Neg,): Expressions._negative,
    (exp.Paren,): Expressions._paren,
    (exp.And, exp.Or): Expressions._logic,
    (exp.Not,): Expressions._not,
    (exp.Is,): Expressions._is,
    _ARITHMETIC: Expressions._arithmetic,
    _COMPARISONS: Expressions._comparison,
    (exp.Between,): Expressions._between,
    (exp.In,): Expressions._in,
    (exp.Like, exp.ILike): Expressions._like,
    (exp.DPipe,): Expressions._concatenation,
    (exp.Cast, exp.TryCast): Expressions._cast,
    (exp.Case,): Expressions._case,
    (exp.Interval,): Expressions._interval,
    (exp.Extract,): Expressions._extract,
    (exp.Substring,): Expressions._substring,
    (exp.Trim,): Expressions._trim,
    (exp.StrPosition,): Expressions._position,
    (exp.Exists,): Expressions._exists,
    (exp.Subquery, exp.Select, exp.SetOperation): Expressions._scalar,
    (exp.Anonymous,): Expressions._call,
    (exp.Window,): Expressions._window,
    (exp.Filter, exp.IgnoreNulls, exp.RespectNulls): Expressions._filter,
    (exp.WithinGroup,): Expressions._within_group,
}


def _named_type(spelt: Any) -> SparkType | None:
    name = spelt.this.name if hasattr(spelt.this, "name") else str(spelt.this)
    sizes = [int(p.this.name) for p in spelt.expressions if isinstance(p.this, exp.Literal)]
    if name == "DECIMAL":
        precision, scale = (*sizes, 0)[:2] if sizes else (0, 0)
        return decimal(precision, scale) if sizes and 0 < precision <= 38 and scale <= precision else None
    return _NAMED_TYPES.get(name) if not sizes else None


def _cast_difference(source: SparkType | None, target: SparkType | None) -> str:
    if source is not None and source.is_floating and target == STRING:
        return "Spark writes 1.0E10 and Infinity, DataFusion 10000000000.0 and inf"
    if source is not None and source.is_floating and target is not None and target.is_decimal:
        return "Spark rounds the number as it is printed, DataFusion the binary number"
    if source == STRING and target in (DATE, TIMESTAMP):
        return (
            "the engines read different forms of dates and instants;"
            " 2024-01-31 and 2024-01-31 23:30:00 are read alike"
        )
    if TIMESTAMP in (source, target):
        return "Spark counts seconds, DataFusion microseconds"
    return NOT_COMPARED


def _among(value: exp.Expression, others: list[exp.Expression], literals: bool) -> exp.Expression:
    """`value IN (...)`.

    DataFusion's IN loses matches among values that are not literals, so these become equalities.
    """
    if literals:
        return exp.In(this=exp.Paren(this=value), expressions=others)
    equal = [exp.Paren(this=exp.EQ(this=value.copy(), expression=other)) for other in others]
    disjunction: exp.Expression = equal[0]
    for one in equal[1:]:
        disjunction = exp.Or(this=disjunction, expression=one)
    return disjunction


def _text_of_operator(node: exp.Expression) -> str:
    return next((text for kind, text in _COMPARED.items() if isinstance(node, kind)), "IS DISTINCT FROM")


def _cannot_be_constant(node: exp.Expression) -> bool:
    """Whether DataFusion cannot reduce a comparison to NULL without reading rows.

    That is so if it consists of columns, numbers and texts.
    """
    plain = (
        exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Paren, exp.And, exp.Or, exp.Not,
        exp.Neg, exp.In, exp.Like, exp.Cast,
        exp.DataType, exp.DataTypeParam, *_COMPARISONS,
    )  # fmt: skip
    return all(
        isinstance(part, plain)
        or (isinstance(part, exp.Is) and isinstance(part.expression, exp.Null | exp.Boolean))
        or (isinstance(part, exp.Null) and isinstance(part.parent, exp.Is))
        or (isinstance(part, exp.Anonymous) and str(part.this) == "arrow_cast")
        for part in node.walk()
    )
