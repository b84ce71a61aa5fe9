"""What a commit needs to know of its table's log: which tokens the table has seen.

Delta asks for them before it commits with a token. It finds them by a Spark job over the whole log, which
takes longer than a small commit itself, and keeps the answer until the log grows. The sums that Delta writes
beside each log entry contain them too, and reading those needs no job. Later versions of Delta read them
there. This one only writes them, so they are put where it keeps its answer.
"""

from importlib.metadata import version
from typing import Any

from pyspark.sql import SparkSession

_READS_NO_SUMS = "4.4.0"
"""The version of Delta whose snapshots have these fields. Other versions look for themselves."""
_ANSWER, _ANSWERED, _BIT = "transactions", "bitmap$0", 1 << 19
"""In a snapshot: where the tokens are kept, and the bit that says so."""


def know_tokens(session: SparkSession, uri: str) -> None:
    """Let Delta know which tokens a table has seen up to its last version."""
    snapshot = find_snapshot(session, uri)
    if not _take_from_sums(session, snapshot):
        snapshot.setTransactions()


def take_tokens(session: SparkSession, uri: str) -> None:
    """The same where it needs no Spark job. Elsewhere the commit looks for itself."""
    _take_from_sums(session, find_snapshot(session, uri))


def find_snapshot(session: SparkSession, uri: str) -> Any:
    """Delta's own view of a table at its last version."""
    jvm = _jvm(session)
    # A job runs with the settings of the session that is active in this thread.
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, uri)
    return log.update(False, none, none)


def _take_from_sums(session: SparkSession, snapshot: Any) -> bool:
    """Whether the sums beside the snapshot's last log entry have the tokens."""
    kind = snapshot.getClass()
    if version("delta-spark") != _READS_NO_SUMS or kind.getSimpleName() != "Snapshot":
        return False  # before a table's first commit it is of another class
    sums = snapshot.checksumOpt()
    if sums.isEmpty() or sums.get().setTransactions().isEmpty():
        return False
    if snapshot.minSetTransactionRetentionTimestamp().isDefined():
        return False  # the sums also have tokens that have expired
    jvm = _jvm(session)
    answered = kind.getDeclaredField(_ANSWERED)
    answered.setAccessible(True)
    known = answered.getInt(snapshot)
    if not known & _BIT:
        answer = kind.getDeclaredField(_ANSWER)
        answer.setAccessible(True)
        answer.set(snapshot, _as_map(session, jvm, sums.get().setTransactions().get()))
        answered.setInt(snapshot, known | _BIT)
    return True


def _as_map(session: SparkSession, jvm: Any, tokens: Any) -> Any:
    """By application: its last token."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    count = tokens.length()
    names, numbers = jvm.java.util.ArrayList(), gateway.new_array(jvm.long, count)
    for nth in range(count):
        token = tokens.apply(nth)
        names.add(token.appId())
        numbers[nth] = token.version()
    # Scala takes no integer for a long, and Python hands small numbers on as integers.
    longs = jvm.java.util.stream.LongStream.of(numbers).boxed().toList()
    pairs = jvm.PythonUtils.toSeq(names).zip(jvm.PythonUtils.toSeq(longs))
    # In Scala this is `<:<.refl`, of the object `<:<`: the class of that name has no static method.
    each_is_a_pair = getattr(getattr(jvm.scala, "$less$colon$less$"), "MODULE$").refl()
    return pairs.toMap(each_is_a_pair)


def _jvm(session: SparkSession) -> Any:
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return jvm
