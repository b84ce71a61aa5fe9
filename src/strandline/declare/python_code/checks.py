"""Checks of Python jobs and folds, which are parsed and never imported.

The function must exist, and nothing in the module may read the clock or depend on chance (L11).
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.model.errors import Place
from strandline.model.report import Report, suggest
from strandline.sql.checks import check_deterministic
from strandline.sql.python_sql import find_ties, try_parse

_CLOCK = "Use `context.as_of`, the run's logical time."
_CHANCE = "Derive it from the row, for example with `F.xxhash64(*key_columns)`."
_ORDER = "Use `F.max_by(value, F.struct(order, value))`, or the function over a window with `orderBy`."
_OUTSIDE = (
    "Read it as a source of the project, or put the value into `config:`: a job may read only its inputs."
)
_TOTAL = (
    "End `orderBy` with `F.xxhash64(*sorted(frame.columns))`: rows that are equal in it are equal in every"
    " column."
)
_LITERAL = "Write the text as a literal, or build the column with functions, such as `F.sum(F.col(name))`."

_REFUSED_REFERENCES = {
    **dict.fromkeys(
        (
            "datetime.now",
            "datetime.utcnow",
            "datetime.today",
            "date.today",
            "pd.Timestamp.now",
            "Timestamp.now",
        ),
        _CLOCK,
    ),
    **dict.fromkeys(
        (
            "Timestamp.today",
            "Timestamp.utcnow",
            "time.time",
            "time.time_ns",
            "time.monotonic",
            "time.localtime",
        ),
        _CLOCK,
    ),
    **dict.fromkeys(
        ("time.gmtime", "time.perf_counter", "time.ctime", "time.strftime", "time.process_time"), _CLOCK
    ),
    "os.urandom": _CHANCE,
    **dict.fromkeys(
        (
            "os.environ",
            "os.environb",
            "os.getenv",
            "os.system",
            "os.popen",
            "os.listdir",
            "os.scandir",
            "os.walk",
        ),
        _OUTSIDE,
    ),
    **dict.fromkeys(
        (
            "os.getcwd",
            "os.getpid",
            "os.open",
            "os.stat",
            "io.open",
            "sys.argv",
            "sys.stdin",
            "locale.getlocale",
        ),
        _OUTSIDE,
    ),
}
"""By dotted name, or by the end of one."""
_REFUSED_BUILTINS = {"open": _OUTSIDE, "input": _OUTSIDE, "id": _CHANCE, "hash": _CHANCE}
"""`id` is an address. Python's `hash` of text differs between processes."""
_REFUSED_MODULES = {
    **dict.fromkeys(("random", "secrets", "uuid", "numpy.random", "np.random"), _CHANCE),
    **dict.fromkeys(
        ("requests", "httpx", "urllib.request", "urllib3", "http.client", "socket", "ftplib", "smtplib"),
        _OUTSIDE,
    ),
    **dict.fromkeys(
        (
            "subprocess",
            "glob",
            "sqlite3",
            "boto3",
            "psycopg",
            "psycopg2",
            "sqlalchemy",
            "platform",
            "getpass",
        ),
        _OUTSIDE,
    ),
}
_REFUSED_FUNCTIONS = {
    **dict.fromkeys(
        ("current_timestamp", "current_date", "now", "curdate", "localtimestamp", "current_time"), _CLOCK
    ),
    **dict.fromkeys(("rand", "randn", "random", "uuid", "shuffle", "randstr", "uniform"), _CHANCE),
    **dict.fromkeys(
        ("monotonically_increasing_id", "spark_partition_id", "input_file_name"),
        "Use the columns of the row.",
    ),
    **dict.fromkeys(("input_file_block_start", "input_file_block_length"), "Use the columns of the row."),
    **dict.fromkeys(
        ("current_user", "session_user", "user", "current_database", "current_schema", "current_catalog"),
        _OUTSIDE,
    ),
    **dict.fromkeys(("current_timezone", "version", "reflect", "java_method", "try_reflect"), _OUTSIDE),
    **dict.fromkeys(("first", "last", "first_value", "last_value", "any_value", "mode", "nth_value"), _ORDER),
    **dict.fromkeys(("row_number", "lag", "lead", "ntile"), _ORDER),
    **dict.fromkeys(
        ("collect_list", "collect_set", "array_agg"), "Wrap it: `F.sort_array(F.collect_list(...))`."
    ),
    **dict.fromkeys(
        ("listagg", "string_agg"), "Sort first: `F.array_join(F.sort_array(F.collect_list(...)), ',')`."
    ),
}
"""Functions of `pyspark.sql.functions`."""

_RANKED = {"first", "last", "first_value", "last_value", "nth_value", "row_number", "lag", "lead", "ntile"}
"""Functions that depend on the order of their window."""
_SORTING = {"sort_array", "array_sort", "size", "cardinality", "array_size"}
_HASHING = {"xxhash64", "hash", "sha2", "md5"}
_FIRST_ROWS = "Rank rows with `F.row_number()` over a window with a total `orderBy`, and filter by the rank."
_REFUSED_METHODS = {
    **dict.fromkeys(("sample", "sampleBy", "randomSplit"), "Filter on a hash of the key."),
    **dict.fromkeys(
        ("limit", "head", "take", "tail", "first", "offset", "zipWithIndex", "zipWithUniqueId"), _FIRST_ROWS
    ),
}
_TEXT_METHODS = {"selectExpr", "sql"}
_CONDITIONS = {"filter", "where", "having"}
_READERS = {
    "csv",
    "json",
    "parquet",
    "orc",
    "text",
    "table",
    "load",
    "format",
    "option",
    "options",
    "schema",
    "jdbc",
    "textFile",
}
_FILE_METHODS = {"read_text", "read_bytes", "iterdir", "rglob"}
_SPARK_FUNCTIONS = {
    "F",
    "f",
    "fn",
    "sf",
    "functions",
    "sql.functions",
    "pyspark.sql.functions",
    "pyspark.sql.functions.builtin",
}
_ORDERED_SINCE = {"orderBy", "sort"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """How the engine calls a function of the user's, and what the function may use."""

    parameters: tuple[str, ...]
    names_are_free: bool = False
    """Whether the function may give its parameters other names."""
    reads: str
    """What the function may read."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Remedies that replace those for jobs."""


JOB = Calling(parameters=("inputs", "context"), reads="an input of the job")
FOLD = Calling(
    parameters=("state", "facts"),
    names_are_free=True,
    reads="a fact or the state",
    instead={
        _CLOCK: "Use the dates and times of the facts: the fold gives the same whenever it is called.",
        _CHANCE: "Derive it from the facts or the state.",
        _OUTSIDE: "Put it into the facts, for example with a job that joins it, or write the value into the"
        " code.",
    },
)


def find_function(
    text: str, name: str, file: str, place: Place, report: Report, calling: Calling = JOB
) -> ast.Module | None:
    """The module's tree. Reports a function that does not exist or takes other parameters."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        what = f"the file is not Python: {getattr(error, 'msg', None) or error}."
        report.add(
            "python-syntax", what, "Correct it so that `python` accepts it.", Place(file=file, line=line)
        )
        return None
    functions = {
        node.name: node for node in module.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    if name not in functions:
        what = f"`{file}` has no function `{name}` at its top level."
        report.add("function-not-found", what, suggest(name, functions, "functions"), place)
        return module
    function = functions[name]
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    extra = arguments.vararg or arguments.kwarg or arguments.kwonlyargs
    wanted = ", ".join(calling.parameters)
    fits = len(names) == len(calling.parameters) if calling.names_are_free else names == [*calling.parameters]
    if not fits or extra or isinstance(function, ast.AsyncFunctionDef):
        parameters = f"({', '.join(names)}{', ...' if extra else ''})"
        what = f"`{name}` must take exactly `({wanted})`, and takes `{parameters}`."
        report.add(
            "wrong-parameters",
            what,
            f"Write `def {name}({wanted}):`.",
            Place(file=file, line=function.lineno),
        )
    return module


def check_python(module: ast.Module, file: str, report: Report, calling: Calling = JOB) -> None:
    """Report everything in the module that could make two runs over the same rows differ."""
    checks = _Checks(module, file, report, calling)
    for node in ast.walk(module):
        checks.check(node)


class _Checks:
    """The checks of one module, with the meaning of its names."""

    def __init__(self, module: ast.Module, file: str, report: Report, calling: Calling) -> None:
        self.file, self.report, self.calling = file, report, calling
        self.aliases = _imported(module)
        self.parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
        self.orders = [
            n for n in ast.walk(module) if isinstance(n, ast.Call) and _method(n) in _ORDERED_SINCE
        ]
        self.texts = {
            target.id: node.value
            for node in module.body
            if isinstance(node, ast.Assign) and _text(node.value) is not None
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def refuse(
        self, node: ast.expr | ast.stmt, what: str, remedy: str, slug: str = "nondeterministic"
    ) -> None:
        instead = self.calling.instead.get(remedy, remedy)
        self.report.add(slug, what, instead, Place(file=self.file, line=node.lineno))

    def check(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                for name in dict.fromkeys(_modules(node)):
                    if remedy := _REFUSED_MODULES.get(name) or _REFUSED_REFERENCES.get(name):
                        self.refuse_name(node, name, remedy)
            case ast.Attribute(attr="rdd"):
                self.refuse(
                    node,
                    "`.rdd` gives rows in an arbitrary order.",
                    "Use the functions of DataFrames.",
                )
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) if not isinstance(
                self.parents.get(node), ast.Attribute
            ):
                self.check_reference(node)
            case ast.Call():
                self.check_call(node)
            case ast.Constant(value=str(text)) if not self.is_docstring(node):
                self.check_text(node, text, certain=False)

    def refuse_name(self, node: ast.expr | ast.stmt, name: str, remedy: str) -> None:
        why = {_CLOCK: "reads the wall clock", _CHANCE: "depends on chance"}.get(
            remedy, f"reads what is not {self.calling.reads}"
        )
        self.refuse(
            node, f"`{name}` {why}.", remedy, "outside-input" if remedy == _OUTSIDE else "nondeterministic"
        )

    def check_reference(self, node: ast.Name | ast.Attribute) -> None:
        name = _dotted(node, self.aliases)
        if remedy := _refused_reference(name):
            self.refuse_name(node, name, remedy)
            return
        parent = self.parents.get(node)
        short = _spark_function(name)
        # A function that is passed on is called elsewhere.
        if short in _REFUSED_FUNCTIONS and not (isinstance(parent, ast.Call) and parent.func is node):
            self.refuse_function(node, short)

    def refuse_function(self, node: ast.expr, short: str) -> None:
        remedy = _REFUSED_FUNCTIONS[short]
        slug = "outside-input" if remedy == _OUTSIDE else "nondeterministic"
        self.refuse(node, f"`{short}` depends on {_on_what(remedy)}.", remedy, slug)

    def check_call(self, node: ast.Call) -> None:
        name, method = _dotted(node.func, self.aliases), _method(node)
        short = _spark_function(name)
        if name in _REFUSED_BUILTINS:
            self.refuse_name(node, name, _REFUSED_BUILTINS[name])
        elif short in _REFUSED_FUNCTIONS:
            if not self.is_settled(node, short):
                self.refuse_function(node, short)
            elif self.is_over_a_window(node) and not self.orders_are_total():
                self.refuse(
                    node,
                    f"`{short}` depends on how rows that are equal in its window happen to be stored.",
                    _TOTAL,
                )
        elif short in ("max_by", "min_by") and not self.breaks_ties(node):
            what = f"`{short}` takes whichever row comes first among those that are equal in its order."
            self.refuse(node, what, f"Write `F.{short}(value, F.struct(order, value))`.")
        elif short in ("expr", "call_function", "call_udf") or (not short and method in _TEXT_METHODS):
            self.check_texts(node, short or method)
        elif short:
            return
        elif method == "limit" and isinstance(node.func, ast.Attribute) and _is_ordered(node.func):
            if not self.orders_are_total():
                what = "`.limit()` depends on how rows that are equal in the order happen to be stored."
                self.refuse(node, what, _TOTAL)
        elif method in _REFUSED_METHODS:
            self.refuse(node, f"`.{method}()` takes whichever rows come first.", _REFUSED_METHODS[method])
        elif method in ("dropDuplicates", "drop_duplicates") and (node.args or node.keywords):
            what = f"`.{method}()` of some columns keeps whichever row comes first."
            self.refuse(
                node,
                what,
                "Use `groupBy(...).agg(F.max_by(value, F.struct(order, value)))`,"
                " or `distinct()` over all columns.",
            )
        elif method in _CONDITIONS and node.args and (literal := self.find_text(node.args[0])):
            self.check_text(literal, _text(literal) or "", certain=True)
        elif method == "agg":
            self.check_named_functions(node)
        elif self.reads_files(node, method):
            self.refuse(
                node, f"`.{method}()` reads what is not {self.calling.reads}.", _OUTSIDE, "outside-input"
            )

    def check_texts(self, node: ast.Call, called: str) -> None:
        """Text that a function takes must be a literal: anything else cannot be checked."""
        for argument in node.args if called != "call_function" and called != "call_udf" else node.args[:1]:
            literal = self.find_text(argument)
            if literal is None:
                self.refuse(
                    node,
                    f"the text argument of `{called}` is not a literal, so it cannot be checked.",
                    _LITERAL,
                    "text-not-literal",
                )
            elif called in ("call_function", "call_udf"):
                if (name := (_text(literal) or "").lower()) in _REFUSED_FUNCTIONS:
                    self.refuse_function(node, name)
            else:
                self.check_text(literal, _text(literal) or "", certain=True)

    def check_named_functions(self, node: ast.Call) -> None:
        """`agg({"x": "first"})`."""
        for value in (v for argument in node.args if isinstance(argument, ast.Dict) for v in argument.values):
            literal = self.find_text(value)
            if literal is None:
                self.refuse(
                    node,
                    "the function names in `agg` are not literals, so they cannot be checked.",
                    _LITERAL,
                    "text-not-literal",
                )
            elif (name := (_text(literal) or "").lower()) in _REFUSED_FUNCTIONS:
                self.refuse_function(node, name)

    def find_text(self, node: ast.expr) -> ast.expr | None:
        """The literal of an argument: the argument itself, or the value of a module's name."""
        literal = self.texts.get(node.id) if isinstance(node, ast.Name) else node
        return literal if literal is not None and _text(literal) is not None else None

    def check_text(self, node: ast.expr, text: str, *, certain: bool) -> None:
        """Check SQL. If it is not certain that the text is SQL, it is checked only if it calls a function."""
        if not certain and not re.search(r"\w\(", text):
            return
        query = text if re.match(r"\s*(select|with)\b", text, re.IGNORECASE) else f"select {text}"
        tree = try_parse(query)
        if tree is None:
            if certain:
                self.refuse(
                    node,
                    f"the text `{text[:60]}` is not SQL that can be checked.",
                    _LITERAL,
                    "text-not-literal",
                )
            for name in re.findall(r"(\w+)\(", text.lower()):  # it may be a part of SQL
                if _REFUSED_FUNCTIONS.get(name) in (_CLOCK, _CHANCE):
                    self.refuse_function(node, name)
            return
        check_deterministic(
            tree, query, lambda line: Place(file=self.file, line=node.lineno + line - 1), self.report
        )
        for part in find_ties(tree, ranked=_RANKED, hashing=_HASHING):
            what = f"`{part[:80]}` depends on how rows that are equal in its order happen to be stored."
            self.refuse(
                node,
                what,
                "End the order with `xxhash64(<all columns>)`."
                " For `max_by`, write `struct(<order>, <value>)`.",
            )

    def is_docstring(self, node: ast.AST) -> bool:
        return isinstance(self.parents.get(node), ast.Expr)

    def is_settled(self, node: ast.Call, name: str) -> bool:
        """Whether it is sorted after collecting, or over a window with an order (`.over(...)`)."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.Call) and _spark_function(_dotted(parent.func, self.aliases)) in _SORTING:
            return True
        return self.is_over_a_window(node) and (name in _RANKED or name.startswith("collect_"))

    def is_over_a_window(self, node: ast.Call) -> bool:
        parent = self.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr == "over"

    def orders_are_total(self) -> bool:
        """Whether every order in the module ends with a hash of the row."""
        return bool(self.orders) and all(call.args and self.hashes(call.args[-1]) for call in self.orders)

    def hashes(self, node: ast.expr) -> bool:
        calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
        return any(_spark_function(_dotted(call.func, self.aliases)) in _HASHING for call in calls)

    def breaks_ties(self, node: ast.Call) -> bool:
        """`max_by(value, struct(order, value))`: rows that are equal in the order have the same value."""
        if len(node.args) != 2:
            return False
        value, order = node.args
        if not isinstance(order, ast.Call) or _spark_function(_dotted(order.func, self.aliases)) != "struct":
            return self.hashes(order)
        return any(ast.dump(part) == ast.dump(value) for part in order.args) or self.hashes(order)

    def reads_files(self, node: ast.Call, method: str) -> bool:
        if method in _FILE_METHODS or _dotted(node.func, self.aliases).startswith(
            ("pandas.read_", "pd.read_", "numpy.load", "np.load")
        ):
            return True
        value = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(value, ast.Attribute) and value.attr in ("read", "readStream") and method in _READERS:
            return True
        return method == "table" and bool(node.args) and _text(node.args[0]) is not None


def _method(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def mentions_as_of(module: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "as_of" for node in ast.walk(module))


def _on_what(remedy: str) -> str:
    return {_CLOCK: "the wall clock", _CHANCE: "chance", _OUTSIDE: "who runs it and where"}.get(
        remedy, "how rows happen to be stored"
    )


def _imported(module: ast.Module) -> dict[str, str]:
    """The meaning of a bare name: `dt` -> `datetime`, `now` -> `pyspark.sql.functions.now`."""
    aliases: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            aliases |= {
                (a.asname or a.name.split(".")[0]): (a.name if a.asname else a.name.split(".")[0])
                for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            aliases |= {(a.asname or a.name): f"{node.module}.{a.name}" for a in node.names}
    return aliases


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([aliases.get(node.id, node.id), *reversed(parts)])


def _refused_reference(name: str) -> str | None:
    for reference, remedy in _REFUSED_REFERENCES.items():
        if name == reference or name.endswith(f".{reference}") or name.startswith(f"{reference}."):
            return remedy
    return next(
        (remedy for module, remedy in _REFUSED_MODULES.items() if name.startswith(f"{module}.")), None
    )


def _spark_function(name: str) -> str:
    """The last word of a name that may be in `pyspark.sql.functions`. Empty for any other name."""
    head, _, last = name.rpartition(".")
    return last if head in _SPARK_FUNCTIONS else ""


def _is_ordered(function: ast.Attribute) -> bool:
    """`frame.orderBy(...).limit(n)`."""
    value = function.value
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _ORDERED_SINCE
    )
