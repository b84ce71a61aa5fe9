"""HTML built from elements, so that it is balanced and text from elsewhere is escaped."""

from html import escape

_VOID = frozenset({"meta", "link", "br"})


class Markup(str):
    """Text that is already HTML and is not escaped again."""

    __slots__ = ()


def element(name: str, /, *children: str | int, **attributes: str | float | None) -> Markup:
    """`element("a", "x < y", href="#z", class_="b", aria_label="c")`.

    An attribute that is None is left out.
    """
    written = "".join(
        f' {_spelt(key)}="{escape(_text(value))}"' for key, value in attributes.items() if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str | int) -> Markup:
    return Markup("".join(child if isinstance(child, Markup) else escape(str(child)) for child in children))


def _spelt(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")


def _text(value: str | float) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
