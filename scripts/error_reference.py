"""Writes `docs/reference/errors.md`: every error slug with its messages and remedies, read from the source.

The source is parsed, not imported. A message is shown as it is written, with `<name>` in place of a value. A
message or remedy that is a variable, a parameter or a call is looked up: in the assignments of its function,
the calls of its function, or the returns of the called one.
"""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "strandline"
PAGE = ROOT / "docs" / "reference" / "errors.md"
DEEPEST = 6
"""Variables, parameters and calls are followed at most this far."""
MOST_TEXTS, MOST_INSERTED = 12, 4
"""A message, or a part of one, that can read in more ways than this is shown as a placeholder."""
SLUG = re.compile(r"[a-z]+(-[a-z]+)*")
HYPHENATED = re.compile(r"[a-z]+(-[a-z]+)+")
OPEN, CLOSE = "\x02", "\x03"
"""Around the name of a value that is put into a text."""
PLACEHOLDER = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
NAMES = {
    "spec": "name",
    "context": "name",
    "from_": "dataset",
    "strerror": "error",
    "offending": "value",
}
"""Variables whose own names would say little to a reader of the page."""
HELPERS = {
    "suggest": "Use a name that exists. The message shows the nearest one, or all there are.",
    "_where": "",
    "_whole": "the entry",
}
"""What is shown for a text that a function makes from the project at hand."""
CLASSES = {
    "Mistake": "ProjectError",
    "one_mistake": "ProjectError",
    "add": "ProjectError",
    "refuse": "ProjectError",
    "wrong_entry": "ProjectError",
    "FileRefusedError": "WorkError",
    "RefusedError": "CallError",
    "bad_parameter": "CallError",
    "StrandlineError": "OutsideError",
    "GuardedError": "WorkError",
    "FencedError": "ConflictError",
    "kind": "WorkError",
    "replace": "WorkError",
}
"""By the function that makes an error: the class that says who must act.

Only functions whose name is not that of the class are listed.
"""
DEFAULTS: Mapping[str, str] = {"FencedError": "fenced", "OutsideError": "outside"}
"""The slug of an error that is made without one."""
ACTORS = {
    "ProjectError": "2, the project",
    "CallError": "2, the call",
    "WorkError": "1, a task",
    "ConflictError": "1, another writer",
    "OutsideError": "3, something outside",
}
"""By class: the exit code, and what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Message:
    """What an error says, and what it tells people to do; either may read in several ways."""

    texts: tuple[str, ...]
    remedies: tuple[str, ...]


class Module:
    """A file of the source: its functions, and the function around each expression."""

    def __init__(self, file: Path) -> None:
        self.tree = ast.parse(file.read_text())
        nodes = list(ast.walk(self.tree))
        self._parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]

    def function_around(self, node: ast.AST) -> ast.FunctionDef | None:
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None

    def find_values(self, name: ast.Name) -> list[ast.expr]:
        """The values of a name.

        They come from the assignment before it, else from the arguments of its function's calls, else from
        the module's constant.
        """
        function = self.function_around(name)
        if function and (assigned := self._assigned_before(name)):
            return assigned
        if function and (position := _position(function, name.id)) is not None:
            return self._arguments(function, name.id, position)
        return _assignments(self.tree, name.id)

    def _assigned_before(self, name: ast.Name) -> list[ast.expr]:
        """The values of the last statement before a name that assigns it.

        If that statement has branches, all their values.
        """
        inner: ast.AST = name
        while not isinstance(inner, ast.FunctionDef | ast.Module):
            outer = self._parents[inner]
            for block in (getattr(outer, attribute, None) for attribute in ("body", "orelse", "finalbody")):
                if isinstance(block, list) and inner in block:
                    for statement in reversed(block[: block.index(inner)]):
                        if assigned := _assignments(statement, name.id):
                            return assigned
            if not isinstance(outer, ast.FunctionDef | ast.Module) and (assigned := _header(outer, name.id)):
                return assigned
            inner = outer
        return []

    def _arguments(self, function: ast.FunctionDef, name: str, position: int) -> list[ast.expr]:
        values: list[ast.expr] = []
        for call in self.calls:
            if called_name(call) == function.name:
                values += [k.value for k in call.keywords if k.arg == name]
                values += call.args[position : position + 1]
        defaults = dict(zip(reversed(function.args.args), reversed(function.args.defaults), strict=False))
        return values + [value for argument, value in defaults.items() if argument.arg == name]


def _assignments(scope: ast.AST, name: str) -> list[ast.expr]:
    values: list[ast.expr] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                values += _unpack(target, node.value, name)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            values += _unpack(node.target, node.value, name)
    return values


def _header(statement: ast.AST, name: str) -> list[ast.expr]:
    """What the condition of an `if` or `while` assigns (`:=`)."""
    return _assignments(statement.test, name) if isinstance(statement, ast.If | ast.While) else []


def _unpack(target: ast.expr, value: ast.expr, name: str) -> list[ast.expr]:
    if isinstance(target, ast.Name) and target.id == name:
        return [value]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [v for t, v in zip(target.elts, value.elts, strict=False) for v in _unpack(t, v, name)]
    return []


def _position(function: ast.FunctionDef, name: str) -> int | None:
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    return names.index(name) if name in names else None


def called_name(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


class Source:
    """All modules, and the texts that expressions of them can give."""

    def __init__(self) -> None:
        self.modules = [Module(file) for file in sorted(SOURCE.rglob("*.py"))]

    def texts(self, value: ast.expr, module: Module, depth: int = 0) -> list[str]:
        """The texts that an expression gives, a placeholder for each part that is only known at run time."""
        if depth > DEEPEST:
            return [placeholder(value)]
        found = self._texts(value, module, depth + 1)
        return list(dict.fromkeys(found)) if 0 < len(found) <= MOST_TEXTS else [placeholder(value)]

    def _texts(self, value: ast.expr, module: Module, depth: int) -> list[str]:
        match value:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return _join([self.texts(part, module, depth) for part in parts])
            case ast.FormattedValue(value=inner):
                return self._inserted(inner, module, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _join([self.texts(left, module, depth), self.texts(right, module, depth)])
            case ast.IfExp(body=body, orelse=orelse):
                return self.texts(body, module, depth) + self.texts(orelse, module, depth)
            case ast.Name():
                values = module.find_values(value) or self._constants(value.id)
                return [text for each in values for text in self.texts(each, module, depth)]
            case ast.Subscript(value=ast.Name() as table):
                entries = [
                    v for each in module.find_values(table) if isinstance(each, ast.Dict) for v in each.values
                ]
                return [text for each in entries for text in self.texts(each, module, depth)]
            case ast.Call(func=ast.Name(id=name)):
                return [HELPERS[name]] if name in HELPERS else self._returned(name, module, depth)
        return []

    def _constants(self, name: str) -> list[ast.expr]:
        """What a constant stands for that another module defines."""
        definitions = [n for m in self.modules for n in m.tree.body if isinstance(n, ast.Assign)]
        return [v for n in definitions for v in _assignments(n, name)] if name.isupper() else []

    def _inserted(self, value: ast.expr, module: Module, depth: int) -> list[str]:
        """A value put into a text: its texts if they are written in the source, else a placeholder."""
        if isinstance(value, ast.Call) and called_name(value) in HELPERS:
            return [HELPERS[called_name(value)]]
        texts = self.texts(value, module, depth) if isinstance(value, ast.IfExp | ast.Name) else []
        phrases = any(" " in PLACEHOLDER.sub("", text) for text in texts)
        if not phrases or len(texts) > MOST_INSERTED or any(PLACEHOLDER.fullmatch(text) for text in texts):
            return [placeholder(value)]
        return texts

    def _returned(self, name: str, module: Module, depth: int) -> list[str]:
        owners = [module, *(other for other in self.modules if other is not module)]
        owner = next((other for other in owners if name in other.functions), None)
        if owner is None:
            return []
        returns = [n.value for n in ast.walk(owner.functions[name]) if isinstance(n, ast.Return) and n.value]
        return [text for value in returns for text in self.texts(value, owner, depth)]


def _join(parts: list[list[str]]) -> list[str]:
    count = 1
    for part in parts:
        count *= len(part)
    return ["".join(texts) for texts in itertools.product(*parts)] if count <= MOST_TEXTS else []


def placeholder(value: ast.expr) -> str:
    name = _name(value)
    return f"{OPEN}{NAMES.get(name, name).replace('_', ' ').strip()}{CLOSE}"


def _name(value: ast.expr) -> str:
    """A word for what is put in: the name of the value that the expression is about."""
    match value:
        case ast.Name(id=name):
            return name.strip("_").lower()
        case ast.Attribute(value=inner, attr="name"):
            return _name(inner)
        case ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Constant()), args=[inner, *_]):
            return _name(inner)
        case ast.Call(func=ast.Name(), args=[*_, inner]):
            return _name(inner)
        case (
            ast.Call(func=ast.Attribute(value=inner))
            | ast.Subscript(value=inner)
            | ast.FormattedValue(value=inner)
        ):
            return _name(inner)
        case ast.GeneratorExp(generators=[first, *_]) | ast.ListComp(generators=[first, *_]):
            return _name(first.iter)
        case ast.BoolOp(values=[first, *_]) | ast.IfExp(body=first) | ast.BinOp(left=first):
            return _name(first)
        case ast.Call(func=ast.Name(id=name)):
            return name.strip("_")
    return "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the page says about a slug."""

    classes: tuple[str, ...]
    messages: tuple[Message, ...]


@cache
def find_errors() -> dict[str, Entry]:
    """By slug: who must act, and every message that the source writes."""
    source = Source()
    classes: dict[str, dict[str, None]] = defaultdict(dict)
    messages: dict[str, dict[Message, None]] = defaultdict(dict)
    for module in source.modules:
        for call in module.calls:
            for slug, message in _errors_of(call, module, source):
                classes[slug][CLASSES.get(called_name(call), called_name(call))] = None
                messages[slug][message] = None
    return {
        slug: Entry(classes=tuple(classes[slug]), messages=SUMMARIES.get(slug, tuple(messages[slug])))
        for slug in sorted(messages)
    }


def _errors_of(call: ast.Call, module: Module, source: Source) -> Iterator[tuple[str, Message]]:
    parts = _parts(call)
    if parts is None:
        return
    slug, what, remedy = parts
    texts = tuple(_sentence(text) for text in source.texts(what, module))
    remedies = tuple(_sentence(text) for text in source.texts(remedy, module)) if remedy else ()
    for text in source.texts(slug, module):
        if SLUG.fullmatch(text):
            yield text, Message(texts=texts, remedies=tuple(remedy for remedy in remedies if remedy))


def _parts(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """Slug, message and remedy of a call that makes or reports an error; None for any other call."""
    name, args = called_name(call), call.args
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "refuse" and len(args) >= 3 and ast.unparse(call.func) == "self.refuse":
        return (args[3] if len(args) > 3 else ast.Constant("nondeterministic")), args[1], args[2]
    if name in ("add", "one_mistake") and len(args) >= 3:
        first = next((i for i, value in enumerate(args[:2]) if isinstance(value, ast.Constant)), None)
        return (
            None
            if first is None or len(args) < first + 3
            else (args[first], args[first + 1], args[first + 2])
        )
    what = (
        args[0] if args and name.endswith(("Error", "kind")) else keywords.get("what", keywords.get("error"))
    )
    slug = keywords.get("slug", ast.Constant(DEFAULTS.get(name, "")))
    return (slug, what, keywords.get("remedy")) if what else None


def _sentence(text: str) -> str:
    text = " ".join(re.sub(f"^{OPEN}(place|file){CLOSE}: ", "", text).split())
    text = text.replace("{entry}", HELPERS["_whole"])
    return text[:1].upper() + text[1:]


def find_refusals() -> list[str]:
    """The slugs that a row of a quarantine can have."""
    texts = {
        node.value
        for file in (SOURCE / "compute" / "facts" / name for name in ("decode.py", "received.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and HYPHENATED.fullmatch(node.value)
    }
    return sorted(texts - {"missing-column", "metadata-column"})


def make_page() -> str:
    lines = [HEADER]
    for slug, entry in find_errors().items():
        actors = "; ".join(ACTORS[name] for name in ACTORS if name in entry.classes)
        lines += [f"### `{slug}`", "", f"Exit code {actors}.", "", *map(_item, entry.messages), ""]
    lines += [
        REFUSED_HEADER,
        *(f"| `{slug}` | {' | '.join(REFUSED[slug])} |" for slug in find_refusals()),
        "",
    ]
    return "\n".join(lines)


def _item(message: Message) -> str:
    return "\n".join(
        [f"- {_show(message.texts)}", *(f"  - {_show((remedy,))}" for remedy in message.remedies)]
    )


def _show(texts: tuple[str, ...]) -> str:
    """Markdown: a placeholder is written `<name>`, in its own backticks unless it is inside some."""
    parts = " Or: ".join(texts).split("`")
    return "`".join(PLACEHOLDER.sub(r"<\1>" if i % 2 else r"`<\1>`", part) for i, part in enumerate(parts))


SUMMARIES: Mapping[str, tuple[Message, ...]] = {
    slug: (Message(texts=(cause,), remedies=remedies),)
    for slug, (cause, remedies) in {
        "disk-full": (
            "The disk has no room left. The message is that of Spark or of the operating system.",
            ("Free some room on the disk and run again; nothing was half-written.",),
        ),
        "file-damaged": (
            "A file of the lake is missing, or has other bytes than were written.",
            ("Run `strandline doctor --deep`: it finds every such file and says what to do.",),
        ),
        "import-not-followed": (
            "A Python job imports a module in a way that cannot be followed, "
            "so a change of that module would go unnoticed.",
            ("Import the module at the top of the file, by its name. The message shows the line.",),
        ),
        "input-relation-unknown": (
            "How an input relates to the key of a job is neither declared nor proved from the SQL. "
            "Python jobs always declare it.",
            (
                "Declare it under `incremental: {inputs: ...}`. The message shows the YAML to paste. "
                "`whole` is always right; a change in a `whole` input recomputes everything.",
            ),
        ),
        "nondeterministic": (
            "SQL or Python reads the wall clock, or its result depends on chance or on the order of rows.",
            (
                "Use `:as_of`, or `context.as_of` in Python, for the time of the run.",
                "Derive an id from the row, for example with `xxhash64`.",
                "Add an order that leaves no two rows equal. The message shows how.",
            ),
        ),
        "option-not-taken": (
            "An option of a CSV source would change how rows are told apart, and cannot be set.",
            ("Remove it. The message says what holds instead.",),
        ),
        "order-not-total": (
            "A window, `LIMIT` or aggregate of a job's SQL orders rows by columns in which two of them can "
            "be equal, so its result "
            "would depend on how rows are stored.",
            ("Add columns to the order until no two rows are equal. The message shows which.",),
        ),
        "outside-input": (
            "A Python job reads a file, the network, "
            "the environment or a table that is not among its inputs.",
            ("Read it as a source of the project, or put the value into `config:`.",),
        ),
        "spark-failed": (
            "Spark, or a library, raised an error that Strandline does not know. "
            "The message is its first lines.",
            ("Run again; `strandline doctor` says more.",),
        ),
    }.items()
}
"""Slugs whose messages are put together at run time, or are written by someone else: a summary instead."""
REFUSED: Mapping[str, tuple[str, str]] = {
    "does-not-fit": (
        "A value does not fit the type that its column declares.",
        "Correct the type under `columns:`, or the value in a new message. "
        "Then `strandline quarantine DATASET --release`.",
    ),
    "identity-conflict": (
        "A fact with the same `identity` was received before, with other values.",
        "Send each event under an identity of its own, or declare a `record_set` if a later fact should win.",
    ),
    "not-json": (
        "The line is not one JSON object, a name appears twice in it, or it contains half a character.",
        "Send the message again as one line of JSON.",
    ),
    "not-text": (
        "The line contains bytes that are not text. They are shown as `\\xNN`.",
        "Send it again as UTF-8, or declare `options: {encoding: ...}` for a CSV source.",
    ),
    "null-key": (
        "A column of the key, or of `identity`, is missing or null.",
        "Send the message again with its key, or give the column a `default`. "
        "Then `strandline quarantine DATASET --release`.",
    ),
    "required-missing": (
        "A column that `require:` names is missing or null.",
        "Send the message again, or remove the column from `require:`. "
        "Then `strandline quarantine DATASET --release`.",
    ),
    "too-large": (
        "The message is not JSON, or contains a string of more than 20,000,000 characters.",
        "Send a smaller message.",
    ),
    "type-changed": (
        "The row has more or fewer fields than its header, "
        "or does not fit the types that the source's columns are stored with.",
        "Write the rows again in a new file, with the fields of its header.",
    ),
}
"""By slug of a quarantined row: the cause, and what to do. Their messages are made by Spark, row by row."""

HEADER = """# Errors

<!-- Generated by `python scripts/error_reference.py`. Change the messages in the source, \
then run it again. -->

Every error ends with a stable slug in square brackets. This page lists each slug with its messages. Below \
each message stands what to do.
`<name>` stands for a value of your project. Scripts may rely on slugs \
and exit codes; the wording of a message may change.

| exit code | who must act |
|---|---|
| 2, the project | the author of the project. `strandline check` reports all of these mistakes \
at once, with file and line |
| 2, the call | the caller: a name, a value or an option is wrong |
| 1, a task | the author of the project, or whoever writes the source's files. \
The task fails, its readers are blocked, the rest of the run goes on |
| 1, another writer | nobody, as a rule: the next run plans the task again |
| 3, something outside | an operator: Spark, disk, database, Java. A run in which only some \
tasks fail this way ends with 1 |

## Slugs
"""
REFUSED_HEADER = """## Reasons in the quarantine

A row that cannot be used does not fail its task. It goes to the quarantine, \
where `strandline quarantine DATASET` shows it with a slug.

| slug | cause | what to do |
|---|---|---|"""


if __name__ == "__main__":
    PAGE.write_text(make_page())
