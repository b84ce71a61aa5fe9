"""Views: the rows of a dataset for which a condition is true, with calculated columns."""
