"""What a commit needs to know of its table's log, read before the commit."""

from pyspark.sql import SparkSession


def replay_log(session: SparkSession, uri: str) -> None:
    """Let Delta read the log of a table up to its last version.

    A commit with a token asks which tokens the table has seen. Delta finds out by a Spark job over the log,
    which takes longer than a small commit itself, and keeps the answer until the log grows.
    """
    jvm = session.sparkContext._jvm
    assert jvm is not None
    # The job runs with the settings of the session that is active in this thread.
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, uri)
    log.update(False, none, none).setTransactions()
