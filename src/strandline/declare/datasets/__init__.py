"""Fact datasets: record sets and event streams, each with its quarantine and perhaps its snapshot."""
