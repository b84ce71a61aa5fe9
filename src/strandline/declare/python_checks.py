"""Python jobs are read, never imported: the function is there, and nothing in the module reads the clock or depends on chance (L11)."""

import ast

from strandline.model.errors import Place

from .report import Report, suggest

_CLOCK = "Use `context.as_of`, the run's logical time."
_CHANCE = "Derive it from the row, for example with `F.xxhash64(*key_columns)`."
_ORDER = "Use `F.max_by(value, order)`, or the function over a window with `orderBy`."

_REFUSED_CALLS = {
    **dict.fromkeys(("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "pd.Timestamp.now", "Timestamp.now"), _CLOCK),
    **dict.fromkeys(("time.time", "time.time_ns", "time.monotonic", "time.localtime", "time.gmtime", "time.perf_counter"), _CLOCK),
}
_REFUSED_MODULES = {"random": _CHANCE, "secrets": _CHANCE, "uuid": _CHANCE, "numpy.random": _CHANCE, "np.random": _CHANCE}
_REFUSED_FUNCTIONS = {
    **dict.fromkeys(("current_timestamp", "current_date", "now", "curdate", "localtimestamp", "current_time"), _CLOCK),
    **dict.fromkeys(("rand", "randn", "uuid", "shuffle", "randstr", "uniform"), _CHANCE),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id", "input_file_name"), "Use the columns of the row."),
    **dict.fromkeys(("first", "last", "first_value", "last_value", "any_value", "mode"), _ORDER),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), "Wrap it: `F.sort_array(F.collect_list(...))`."),
    **dict.fromkeys(("listagg", "string_agg"), "Sort first: `F.array_join(F.sort_array(F.collect_list(...)), ',')`."),
}
"""Of `pyspark.sql.functions`."""

_SORTING = {"sort_array", "array_sort", "size", "cardinality", "array_size"}
_REFUSED_METHODS = {
    "sample": "Filter on a hash of the key.",
    "sampleBy": "Filter on a hash of the key.",
    "randomSplit": "Filter on a hash of the key.",
    "limit": "Rank rows with `F.row_number()` over a window with `orderBy` and filter.",
}
_SPARK_FUNCTIONS = {"F", "f", "fn", "sf", "functions", "sql.functions", "pyspark.sql.functions", "pyspark.sql.functions.builtin"}
_ORDERED_SINCE = {"orderBy", "sort"}


def find_function(text: str, name: str, file: str, place: Place, report: Report) -> ast.Module | None:
    """The module's tree, once the function is there and takes `(inputs, context)`."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        what = f"the file is not Python: {getattr(error, 'msg', None) or error}."
        report.add("python-syntax", what, "Write it so that `python` takes it.", Place(file=file, line=line))
        return None
    functions = {node.name: node for node in module.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    if name not in functions:
        what = f"`{file}` has no function `{name}` at its top level."
        report.add("function-not-found", what, suggest(name, functions, "functions"), place)
        return module
    function = functions[name]
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    extra = arguments.vararg or arguments.kwarg or arguments.kwonlyargs
    if names != ["inputs", "context"] or extra or isinstance(function, ast.AsyncFunctionDef):
        what = f"`{name}` must take exactly `(inputs, context)`, and takes `({', '.join(names)}{', ...' if extra else ''})`."
        report.add("wrong-parameters", what, f"Write `def {name}(inputs, context):`.", Place(file=file, line=function.lineno))
    return module


def check_python(module: ast.Module, file: str, report: Report) -> None:
    """Report everything in the module that two runs over the same rows could answer differently."""
    aliases = _imported(module)
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}

    def refuse(node: ast.expr | ast.stmt, what: str, remedy: str) -> None:
        report.add("nondeterministic", what, remedy, Place(file=file, line=node.lineno))

    for node in ast.walk(module):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in _modules(node):
                if name in _REFUSED_MODULES:
                    refuse(node, f"`{name}` depends on chance.", _REFUSED_MODULES[name])
        elif isinstance(node, ast.Call):
            name = _dotted(node.func, aliases)
            if remedy := _refused_call(name):
                refuse(node, f"`{name}` {'reads the wall clock' if remedy == _CLOCK else 'depends on chance'}.", remedy)
            elif (short := _spark_function(name)) in _REFUSED_FUNCTIONS and not _settled(node, short, parents, aliases):
                refuse(node, f"`{short}` depends on {_on_what(_REFUSED_FUNCTIONS[short])}.", _REFUSED_FUNCTIONS[short])
            elif isinstance(node.func, ast.Attribute) and node.func.attr in _REFUSED_METHODS and not _is_ordered(node.func, aliases):
                refuse(node, f"`.{node.func.attr}()` takes whichever rows come first.", _REFUSED_METHODS[node.func.attr])


def mentions_as_of(module: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "as_of" for node in ast.walk(module))


def _on_what(remedy: str) -> str:
    return "the wall clock" if remedy == _CLOCK else "chance" if remedy == _CHANCE else "how rows happen to lie"


def _imported(module: ast.Module) -> dict[str, str]:
    """What a bare name stands for: `dt` -> `datetime`, `now` -> `pyspark.sql.functions.now`."""
    aliases: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            aliases |= {(a.asname or a.name.split(".")[0]): (a.name if a.asname else a.name.split(".")[0]) for a in node.names}
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


def _refused_call(name: str) -> str | None:
    for call, remedy in _REFUSED_CALLS.items():
        if name == call or name.endswith(f".{call}"):
            return remedy
    for module, remedy in _REFUSED_MODULES.items():
        if name.startswith(f"{module}.") or name == "os.urandom":
            return remedy
    return None


def _spark_function(name: str) -> str:
    """The last word of a call that may be to `pyspark.sql.functions`."""
    head, _, last = name.rpartition(".")
    return last if head in _SPARK_FUNCTIONS else ""


def _settled(node: ast.Call, name: str, parents: dict[ast.AST, ast.AST], aliases: dict[str, str]) -> bool:
    """Collected and then sorted, or over a window that says an order (`.over(...)`)."""
    parent = parents.get(node)
    if isinstance(parent, ast.Call) and _spark_function(_dotted(parent.func, aliases)) in _SORTING:
        return True
    return isinstance(parent, ast.Attribute) and parent.attr == "over" and name not in ("any_value", "mode", "rand", "uuid")


def _is_ordered(function: ast.Attribute, aliases: dict[str, str]) -> bool:
    """`frame.orderBy(...).limit(n)`; and `.sample` of something that is no frame is not our business."""
    value = function.value
    if function.attr == "limit":
        return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ORDERED_SINCE
    return False
