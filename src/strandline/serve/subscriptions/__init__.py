"""Who listens to which dataset: each change is evaluated and encoded once for all who ask for the same.

In: changes, as their logs grow. Out: texts in bounded queues, one queue a connection.
"""
