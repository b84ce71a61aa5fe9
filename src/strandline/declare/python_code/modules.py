"""The files of the project that users' Python imports, directly or indirectly. They are parsed, never run.

A job's modules are searched for in the folder of the job's file, then in the project's folder. The text that
is read here is the text that runs, so the configuration hash covers all of it. What cannot be followed
(`importlib`, `sys.path`, `exec`) is refused. Installed packages are not part of a project.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from strandline.model.errors import Place
from strandline.model.report import Report

_IMPORT = "Write `import <module>`: modules are found beside the job's file and in the project's folder."
_REFUSED_NAMES = {
    "__import__": _IMPORT,
    "exec": "Write the code itself.",
    "eval": "Write the code itself.",
    "compile": "Write the code itself.",
}
_REFUSED_MODULES = {"importlib": _IMPORT, "imp": _IMPORT, "runpy": _IMPORT, "pkgutil": _IMPORT}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectModule:
    """A file of the project that a job imports. `name` is the imported name."""

    name: str
    file: str
    text: str
    tree: ast.Module


@dataclass
class _Following:
    folder: Path
    roots: tuple[PurePosixPath, ...]
    report: Report
    modules: dict[str, ProjectModule] = field(default_factory=dict)

    def follow(self, tree: ast.Module, file: str, package: str) -> None:
        self.refuse(tree, file)
        for name in dict.fromkeys(_imported(tree, package)):
            self.load(name)

    def load(self, name: str) -> None:
        """Read a module of the project and what it imports.

        Any other name belongs to an installed package.
        """
        if name in self.modules:
            return
        path = next(
            (p for root in self.roots for p in _files_of(root, name) if (self.folder / p).is_file()), None
        )
        if path is None:
            return
        file = str(path)
        try:
            text = (self.folder / path).read_bytes().decode("utf-8-sig")
            tree = ast.parse(text)
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None) or 1
            what = f"the file is not Python: {getattr(error, 'msg', None) or error}."
            self.report.add(
                "python-syntax", what, "Correct it so that `python` accepts it.", Place(file=file, line=line)
            )
            return
        self.modules[name] = ProjectModule(name=name, file=file, text=text, tree=tree)
        self.follow(tree, file, name if path.name == "__init__.py" else name.rpartition(".")[0])

    def refuse(self, tree: ast.Module, file: str) -> None:
        for node, what, remedy in _find_unfollowable(tree):
            self.report.add("import-not-followed", what, remedy, Place(file=file, line=node.lineno))


def follow_imports(tree: ast.Module, file: str, folder: Path, report: Report) -> tuple[ProjectModule, ...]:
    """Every file of the project that the module of a job imports, sorted by name."""
    here = PurePosixPath(file).parent
    following = _Following(
        folder=folder, roots=tuple(dict.fromkeys((here, PurePosixPath(".")))), report=report
    )
    following.follow(tree, file, "")
    return tuple(following.modules[name] for name in sorted(following.modules))


def _files_of(root: PurePosixPath, name: str) -> tuple[PurePosixPath, PurePosixPath]:
    path = root.joinpath(*name.split("."))
    return path.with_name(f"{path.name}.py"), path / "__init__.py"


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Every name that an import may load as a module, packages before their modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(part for part in (_parent(package, node.level), node.module or "") if part)
            yield from _with_parents(base)
            for alias in node.names:
                if alias.name != "*":
                    yield f"{base}.{alias.name}" if base else alias.name


def _parent(package: str, level: int) -> str:
    """The package that `.` or `..` means. The folder of the job's file is the package without a name."""
    if level == 0:
        return ""
    parts = package.split(".") if package else []
    return ".".join(parts[: len(parts) - (level - 1)])


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".") if name else []
    return (".".join(parts[: n + 1]) for n in range(len(parts)))


def _find_unfollowable(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in _REFUSED_NAMES:
                yield node, f"`{name}` runs code that cannot be followed.", _REFUSED_NAMES[name]
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.split(".")[0] in _REFUSED_MODULES:
                        yield node, f"`{alias.name}` imports code that cannot be followed.", _IMPORT
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in _REFUSED_MODULES:
                yield node, f"`{module}` imports code that cannot be followed.", _IMPORT
            case ast.ImportFrom(module="sys", names=names) if any(
                a.name in ("path", "modules", "meta_path") for a in names
            ):
                yield node, "`sys.path` and `sys.modules` change what an import means.", _IMPORT
            case ast.Attribute(
                value=ast.Name(id="sys"), attr="path" | "modules" | "meta_path" | "path_hooks" as attr
            ):
                yield node, f"`sys.{attr}` changes what an import means.", f"Remove it. {_IMPORT}"
