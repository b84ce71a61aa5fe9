"""Payments are not sent; they show as the growth of a detail's collected amount from one of its facts to the next."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f


def payments(inputs: Mapping[str, DataFrame], context: Any) -> DataFrame:
    """One row per fact that changed what was collected; money given back is negative.

    Over facts and not over the snapshot, which remembers the last amount only: a late message then moves money to the month it was really
    paid in. The same message twice adds nothing.
    """
    facts = inputs["demand_detail_facts"]
    of_detail = Window.partitionBy("tenant_id", "demand_id", "detail_id")
    # Facts that are equal up to here are ranked by all their columns, so that no one depends on where they lie.
    in_order = of_detail.orderBy(
        "last_modified_at", "version", "collection_amount", f.xxhash64(*sorted(facts.columns))
    )
    before = f.coalesce(f.lag("collection_amount").over(in_order), f.lit(0).cast("decimal(18,2)"))
    return (
        facts.withColumn("amount", (f.col("collection_amount") - before).cast("decimal(18,2)"))
        .where(f.col("amount") != 0)
        .select(
            "tenant_id",
            "demand_id",
            "detail_id",
            "tax_head_code",
            f.col("last_modified_at").alias("paid_at"),
            "month",
            "amount",
        )
    )
