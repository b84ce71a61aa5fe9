"""Counters of the rows that a task reads, which are known once it has been staged."""

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from strandline.lake.reads import SIGN
from strandline.lake.staging import find_counts
from strandline.model.entity import Entity

from .ids import are_named
from .state import LACKS

WITHOUT_ENTITY = "without_entity"
"""The count of rows that name no entity."""


class Counting:
    """What a task read: rows, and among them those that name no entity."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []
        self._lacking: Observation | None = None

    def count(self, rows: DataFrame, entity: Entity) -> DataFrame:
        """Count rows that are read to compute variables from them."""
        nobody = F.count_if(~are_named(entity))
        return self._observe(rows, F.count(F.lit(1)).alias("rows"), nobody.alias(WITHOUT_ENTITY))

    def count_new(self, changes: DataFrame, entity: Entity) -> DataFrame:
        """Count the rows that came and name no entity. They are in no scope, so nothing else reads them."""
        came = F.when(~are_named(entity) & (F.col(SIGN) > 0), F.col(SIGN)).otherwise(0)
        return self._observe(changes, F.sum(came).alias(WITHOUT_ENTITY))

    def count_lacking(self, rows: DataFrame) -> DataFrame:
        self._lacking = Observation()
        return rows.observe(self._lacking, F.count_if(F.col(LACKS)).alias("lacking")).drop(LACKS)

    def lacking(self) -> int:
        """The entities whose published row does not tell enough to add to it."""
        counts = find_counts(self._lacking) if self._lacking is not None else None
        return counts["lacking"] or 0 if counts else 0

    def rows(self) -> int:
        return self._sum("rows")

    def without_entity(self) -> int:
        return self._sum(WITHOUT_ENTITY)

    def _observe(self, rows: DataFrame, *counts: Column) -> DataFrame:
        observation = Observation()
        self._observations.append(observation)
        return rows.observe(observation, *counts)

    def _sum(self, name: str) -> int:
        counted = [find_counts(observation) for observation in self._observations]
        return sum(counts.get(name) or 0 for counts in counted if counts)
