"""Fact datasets: record sets and event streams, each with its quarantine.

A record set also has a snapshot.
"""
