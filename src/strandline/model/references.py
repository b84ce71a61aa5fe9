"""Secrets that the project file refers to: `${NAME}` is read from the environment by whoever needs it."""

import re
from collections.abc import Mapping

from .errors import CallError

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(text: str, owner: str, environ: Mapping[str, str]) -> str:
    """The text with the values of the environment. `owner` says what needs them."""

    def value(reference: re.Match[str]) -> str:
        name = reference[1]
        if name not in environ:
            raise CallError(
                f"The {owner} needs `${{{name}}}` of the environment, which is not set.",
                remedy=f"Set it before the call: `export {name}=...`.",
                slug="secret-not-set",
            )
        return environ[name]

    return REFERENCE.sub(value, text)
