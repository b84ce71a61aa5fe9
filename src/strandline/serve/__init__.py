"""HTTP, GraphQL, metrics, the dispatcher's loop and the deliveries of one process.

In: a project's folder and the options of `strandline serve`. Out: answers, and work that `app` does on one
dispatcher thread. Nothing here imports Spark; `app` starts it when there is work.
"""
