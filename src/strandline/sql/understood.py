"""The lists of queries, expressions and functions that the proof of a relation understands.

A query that contains anything else proves nothing, whatever it looks like. So a construct that the parser
learns tomorrow, or that it reads differently from Spark, costs its user a line of YAML and never a row.
"""

from sqlglot import exp

_QUERY_PARTS = {"with_", "order", "limit", "offset"}
_PARTS: dict[type[exp.Expr], set[str]] = {
    exp.Select: {
        *_QUERY_PARTS,
        *(
            "expressions",
            "from_",
            "joins",
            "laterals",
            "where",
            "group",
            "having",
            "qualify",
            "windows",
            "distinct",
            "hint",
        ),
        *("sort", "distribute", "cluster"),
    },
    exp.Union: {*_QUERY_PARTS, "this", "expression", "distinct"},
    exp.Except: {*_QUERY_PARTS, "this", "expression", "distinct"},
    exp.Intersect: {*_QUERY_PARTS, "this", "expression", "distinct"},
    exp.Subquery: {*_QUERY_PARTS, "this", "alias"},
    exp.With: {"expressions", "recursive"},
    exp.CTE: {"this", "alias"},
    exp.From: {"this"},
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
    exp.Table: {"this", "alias", "db", "catalog"},
    exp.TableAlias: {"this", "columns"},
    exp.Lateral: {"this", "view", "outer", "alias"},
    exp.Values: {"expressions", "alias"},
    exp.Group: {"expressions", "all", "grouping_sets", "cube", "rollup"},
    exp.Window: {"this", "partition_by", "order", "spec", "alias", "over"},
    exp.WindowSpec: {"kind", "start", "start_side", "end", "end_side"},
    exp.Distinct: {"expressions"},
    exp.Star: {"except_"},
    exp.Column: {"this", "table", "db", "catalog"},
}
"""Structural nodes, each with the parts of it that are followed."""

_PLAIN = (
    *(
        exp.Identifier,
        exp.Literal,
        exp.Null,
        exp.Boolean,
        exp.Var,
        exp.DataType,
        exp.DataTypeParam,
        exp.ColumnDef,
        exp.Interval,
    ),
    *(exp.Placeholder, exp.Parameter, exp.Hint, exp.JoinHint, exp.RawString, exp.HexString),
    *(exp.Alias, exp.Aliases, exp.PropertyEQ, exp.Paren, exp.Tuple, exp.Dot, exp.Bracket, exp.Lambda),
    *(
        exp.Where,
        exp.Having,
        exp.Qualify,
        exp.Order,
        exp.Ordered,
        exp.Sort,
        exp.Distribute,
        exp.Cluster,
        exp.Limit,
        exp.Offset,
    ),
    *(exp.Rollup, exp.Cube, exp.GroupingSets, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls),
    *(
        exp.And,
        exp.Or,
        exp.Not,
        exp.EQ,
        exp.NEQ,
        exp.NullSafeEQ,
        exp.NullSafeNEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.Is,
    ),
    *(
        exp.In,
        exp.Between,
        exp.Like,
        exp.ILike,
        exp.Escape,
        exp.Exists,
        exp.Case,
        exp.If,
        exp.Cast,
        exp.TryCast,
    ),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe),
    *(
        exp.BitwiseAnd,
        exp.BitwiseOr,
        exp.BitwiseXor,
        exp.BitwiseNot,
        exp.BitwiseLeftShift,
        exp.BitwiseRightShift,
    ),
)
"""Values and operators. Their parts are checked in turn."""

_FUNCTION_NAMES = """
abs acos acosh add_months aggregate any approx_count_distinct array array_agg array_append array_compact
array_contains array_distinct array_except array_insert array_intersect array_join array_max array_min
array_position array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap
arrays_zip ascii asin asinh atan atan2 atanh avg base64 bigint bin binary bit_and bit_count bit_get
bit_length bit_or bit_xor bool_and bool_or boolean bround btrim cardinality cbrt ceil ceiling char
char_length character_length chr coalesce collect_list collect_set concat concat_ws contains conv corr cos
cosh cot count count_if covar_pop covar_samp crc32 cume_dist date date_add date_diff date_format
date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek
dayofyear decimal decode degrees dense_rank double e element_at elt encode endswith equal_null every exists
exp explode explode_outer expm1 extract factorial filter find_in_set first first_value flatten float floor
forall format_number format_string from_csv from_json from_unixtime from_utc_timestamp get get_json_object
getbit greatest grouping grouping_id hash hex hour hypot if ifnull ilike initcap inline inline_outer instr
int isnan isnotnull isnull json_array_length json_object_keys json_tuple kurtosis lag last last_day
last_value lcase lead least left len length levenshtein like listagg ln locate log log10 log1p log2 lower
lpad ltrim luhn_check make_date make_timestamp map map_concat map_contains_key map_entries map_filter
map_from_arrays map_from_entries map_keys map_values map_zip_with mask max max_by md5 mean median min min_by
minute mod mode month monthname months_between named_struct nanvl negative next_day nth_value ntile nullif
nullifzero nvl nvl2 octet_length overlay parse_url percent_rank percentile percentile_cont percentile_disc
pi pmod posexplode posexplode_outer position positive pow power printf quarter radians rank reduce regexp
regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat
replace reverse right rint rlike round row_number rpad rtrim second sequence sha sha1 sha2 shiftleft
shiftright sign signum sin sinh size skewness slice smallint some sort_array soundex space split split_part
sqrt stack startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr substring
substring_index sum tan tanh timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_binary
to_char to_csv to_date to_json to_number to_timestamp to_unix_timestamp to_utc_timestamp transform
transform_keys transform_values translate trim trunc try_add try_avg try_divide try_element_at try_multiply
try_subtract try_sum try_to_date try_to_number try_to_timestamp typeof ucase unbase64 unhex unix_date
unix_micros unix_millis unix_seconds unix_timestamp upper url_decode url_encode var_pop var_samp variance
weekday weekofyear when width_bucket xxhash64 year zeroifnull zip_with local_date local_month financial_year
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
"""Functions of a row, a group or a window.

None of them reads a table, or anything else that its arguments do not name.
"""
_OTHER_NAMES = (
    *(
        exp.ToBase64,
        exp.FromBase64,
        exp.BitwiseAndAgg,
        exp.BitwiseOrAgg,
        exp.BitwiseXorAgg,
        exp.BitwiseCount,
        exp.ArrayUniqueAgg,
    ),
    *(
        exp.TsOrDsAdd,
        exp.TimestampAdd,
        exp.TsOrDsToDate,
        exp.TimeToStr,
        exp.TimeStrToTime,
        exp.TimestampTrunc,
        exp.DecodeCase,
    ),
    *(
        exp.Format,
        exp.UnixToStr,
        exp.JSONExtractScalar,
        exp.JSONExtract,
        exp.StrPosition,
        exp.JSONKeys,
        exp.GroupConcat,
        exp.Pad,
    ),
    *(
        exp.TimestampFromParts,
        exp.VarMap,
        exp.Quantile,
        exp.GenerateSeries,
        exp.ArraySlice,
        exp.RegexpSplit,
        exp.JSONFormat,
    ),
    *(
        exp.StrToTime,
        exp.StrToUnix,
        exp.SafeAdd,
        exp.SafeDivide,
        exp.SafeMultiply,
        exp.SafeSubtract,
        exp.Explode,
        exp.Posexplode,
    ),
)
"""The same functions where the parser's name differs from Spark's."""


def find_unknown(tree: exp.Expr) -> str | None:
    """The first thing in a query that is not on the lists, as it is written. None if everything is."""
    for node in tree.walk():
        if not is_known(node):
            text = " ".join(node.sql(dialect="spark").split())
            return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"
    return None


def is_known(node: exp.Expr) -> bool:
    """Whether one part of a query is on the lists."""
    kind = type(node)
    if kind in _PARTS:
        return all(name in _PARTS[kind] for name, value in node.args.items() if value) and _is_sound(node)
    if kind in _PLAIN or kind in _OTHER_NAMES:
        return True
    if isinstance(node, exp.Anonymous):
        return isinstance(node.this, str) and node.this.lower() in _FUNCTIONS
    return isinstance(node, exp.Func) and any(name.lower() in _FUNCTIONS for name in node.sql_names())


def _is_sound(node: exp.Expr) -> bool:
    """Whether a query or a name is really there where one is required.

    `TABLE item` parses as a column, `item@v1` as an alias.
    """
    match node:
        case exp.CTE():
            # The parser rewrites pipes (`|>`) as CTEs with such names, in its own way.
            return isinstance(node.this, exp.Query) and not node.alias.startswith("__tmp")
        case exp.Subquery():
            return isinstance(node.this, exp.Query)
        case exp.SetOperation():
            return isinstance(node.this, exp.Query) and isinstance(node.expression, exp.Query)
        case exp.Select():
            return all(
                isinstance(start.this, (exp.Table, exp.Subquery, exp.Values)) for start in _sources(node)
            )
        case exp.Table():
            return isinstance(node.this, exp.Identifier)
        case exp.TableAlias():
            return all(
                isinstance(name, exp.Identifier) for name in (node.this, *node.columns) if name is not None
            )
        case exp.Lateral():
            return bool(node.args.get("view")) and isinstance(node.this, exp.Func)
        case exp.Values():
            return node.find(exp.Query) is None
        case exp.Star():
            dropped = node.args.get("except_") or []
            return all(
                isinstance(c, exp.Identifier) or (isinstance(c, exp.Column) and len(c.parts) == 1)
                for c in dropped
            )
        case _:
            return True


def _sources(node: exp.Select) -> list[exp.Expr]:
    start = node.args.get("from_")
    return [*([start] if start is not None else []), *(node.args.get("joins") or ())]
