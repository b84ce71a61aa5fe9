"""No message reports a payment: it is the growth of a detail's collected amount between two facts."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f


def payments(inputs: Mapping[str, DataFrame], context: Any) -> DataFrame:
    """One row per fact that changed the collected amount. A refund is negative.

    The job reads facts, because the snapshot remembers only the last amount. So a late message moves money to
    the month in which it was really paid, and a repeated message adds nothing.
    """
    facts = inputs["demand_detail_facts"]
    of_detail = Window.partitionBy("tenant_id", "demand_id", "detail_id")
    # Facts that are equal up to here are ranked by all their columns, so the result does not depend on the
    # order of rows.
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
