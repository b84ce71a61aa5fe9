"""Results -> readers: what triggers make of published changes, and how webhooks are sent.

In come changes of published datasets and deliveries that are owed. Out go events and what was answered. No
module here writes the catalog: `dispatch` does.
"""
