"""A figure to reach, and whether it is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure to reach."""

    text: str
    value: float
    bound: float
    at_least: bool
    unit: str = "x"
    note: str = ""
    """Why the value does not count."""
    beside: str = ""
    """What the value may be compared with."""

    @property
    def met(self) -> bool:
        return (self.value >= self.bound if self.at_least else self.value <= self.bound) and not self.note

    def line(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "yes" if self.met else f"NO {self.note}".rstrip()
        measured = f"{self.value:6.2f}{self.unit:<2} {sign} {self.bound:g}{self.unit:<2}"
        return f"{self.text:<76} {measured}  {verdict}  {self.beside}".rstrip()
