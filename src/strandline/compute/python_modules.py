"""Users' Python runs exactly as the text that was hashed: its module and every project file it imports.

They are loaded anew for each call, and none of them stays in `sys.modules`. So a long-lived process never
runs an older helper, projects do not see each other's modules, and functions that Spark's workers need travel
with their code.
"""

import builtins
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from strandline.model.project import Module


class PythonCode(Protocol):
    """The text of a module, and of the project files that it imports."""

    @property
    def file(self) -> str: ...

    @property
    def code(self) -> str: ...

    @property
    def modules(self) -> tuple[Module, ...]: ...


def load_module(name: str, code: PythonCode, folder: str) -> ModuleType:
    """The module of the job or timeline with this name. Raises what its code raises."""
    return _Loader(name, code, folder).load()


class _Loader:
    def __init__(self, name: str, code: PythonCode, folder: str) -> None:
        self._name, self._code, self._folder = name, code, Path(folder).resolve()
        self._texts: Mapping[str, tuple[str, str]] = {m.name: (m.file, m.code) for m in code.modules}
        self._modules: dict[str, ModuleType] = {}

    def load(self) -> ModuleType:
        return self._run("", self._code.file, self._code.code, package="")

    def _run(self, name: str, file: str, text: str, package: str) -> ModuleType:
        # A unique name: another thread may be importing a module with the same name.
        module = ModuleType(f"strandline_job_{self._name}" + (f".{name}" if name else ""))
        module.__file__ = str(self._folder / file)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._importer(package)}
        if name:
            self._modules[name] = module  # before its code runs, because modules may import each other
        # `dataclasses` looks up a class's module while that is being loaded.
        sys.modules[module.__name__] = module
        try:
            exec(compile(text, module.__file__, "exec"), module.__dict__)
        finally:
            sys.modules.pop(module.__name__, None)
        return module

    def _importer(self, package: str) -> Any:
        def import_(
            name: str,
            globals_: object = None,
            locals_: object = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            full = _resolve(name, package, level)
            if not level and full.split(".")[0] not in self._tops():
                return self._installed(name, globals_, locals_, fromlist, level)
            module = self._get(full) if full else ModuleType("")
            for attribute in fromlist or ():
                inner = f"{full}.{attribute}" if full else attribute
                if attribute != "*" and not hasattr(module, attribute) and self._is_ours(inner):
                    setattr(module, attribute, self._get(inner))
            return module if fromlist else self._get(full.split(".")[0])

        return import_

    def _tops(self) -> set[str]:
        return {name.split(".")[0] for name in self._texts}

    def _is_ours(self, name: str) -> bool:
        return name in self._texts or any(other.startswith(f"{name}.") for other in self._texts)

    def _get(self, name: str) -> ModuleType:
        """A module of the project, loaded once per call, and set as an attribute of its package."""
        if name not in self._modules:
            if not self._is_ours(name):
                raise ModuleNotFoundError(f"No module named {name!r} in the project", name=name)
            parent, _, last = name.rpartition(".")
            if parent:
                self._get(parent)
            if name in self._texts:
                file, text = self._texts[name]
                is_package = Path(file).name == "__init__.py"
                self._run(name, file, text, package=name if is_package else parent)
            else:
                self._modules[name] = ModuleType(name)  # a folder without `__init__.py`
            if parent:
                setattr(self._modules[parent], last, self._modules[name])
        return self._modules[name]

    def _installed(
        self, name: str, globals_: object, locals_: object, fromlist: Sequence[str] | None, level: int
    ) -> ModuleType:
        module = builtins.__import__(name, globals_, locals_, fromlist or (), level)  # type: ignore[arg-type]
        file = getattr(module, "__file__", None)
        if (
            file
            and Path(file).resolve().is_relative_to(self._folder)
            and "site-packages" not in Path(file).parts
        ):
            raise ImportError(
                f"{file} is in the project, beside neither the job's file nor the project file,"
                " and is not hashed"
            )
        return module


def _resolve(name: str, package: str, level: int) -> str:
    if not level:
        return name
    parts = package.split(".") if package else []
    return ".".join(part for part in (*parts[: len(parts) - (level - 1)], name) if part)
