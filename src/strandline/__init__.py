"""Strandline: incremental data pipelines on Spark and Delta Lake for a past that keeps changing."""

__version__ = "0.1.0"
