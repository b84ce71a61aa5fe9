"""An exception of Spark, the disk or a library becomes an error with a slug and a remedy."""

from strandline.model.errors import OutsideError

_DAMAGE = (
    "Checksum error",
    "checksum verification failed",
    "FAILED_READ_FILE",
    "Deletion Vector error",
    "Parquet error",
)
"""What Spark, Arrow and delta-rs report for a file that is missing or has other bytes than were written."""


def as_known(error: Exception) -> OutsideError:
    """The first lines of an exception, without its trace, and what to do."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.strip().startswith("at ")]
    text = " ".join(lines[:3])[:600] or type(error).__name__
    if "No space left on device" in str(error):
        remedy = "Free some room on the disk and run again; nothing was half-written."
        return OutsideError(text, remedy=remedy, slug="disk-full")
    if any(word in str(error) for word in _DAMAGE):
        remedy = (
            "Run `strandline doctor --deep`: it finds every file of the lake that is missing or damaged "
            "and says what to do."
        )
        return OutsideError(text, remedy=remedy, slug="file-damaged")
    return OutsideError(text, remedy="Run again; `strandline doctor` says more.", slug="spark-failed")
