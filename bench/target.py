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

    @property
    def met(self) -> bool:
        return (self.value >= self.bound if self.at_least else self.value <= self.bound) and not self.note

    def line(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "yes" if self.met else f"NO {self.note}".rstrip()
        return (
            f"{self.text:<76} {self.value:6.2f}{self.unit:<2} {sign} {self.bound:g}{self.unit:<2}  {verdict}"
        )
