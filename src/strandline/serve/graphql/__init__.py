"""GraphQL: a schema of what is built, queries, and subscriptions over WebSocket.

In: the text of an operation. Out: answers, or messages as rows change. Nothing here imports Spark.
"""
