"""What Spark's JVM needs besides PySpark: a Java, the six jars of Delta Lake, and one for files.

The jars are resolved once, by coordinates, through the resolver inside PySpark, and kept in a cache with
their checksums, so that every later start is quick and offline. At import this uses only the standard
library, because `scripts/setup.py` loads the file before there is an environment. Spark is imported where the
resolver is called.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
MANIFEST = "verified.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One artifact, by its Maven coordinates, and the checksum that its file must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


# Delta 4.4 on Spark 4.2 runs with these six. Resolved transitively they would be 33, most of them already in
# Spark.
JARS: tuple[Jar, ...] = (
    Jar(
        group="io.delta",
        artifact="delta-spark_4.2_2.13",
        version="4.4.0",
        sha256="27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        group="io.delta",
        artifact="delta-storage",
        version="4.4.0",
        sha256="c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
    Jar(
        group="io.delta",
        artifact="delta-kernel-api",
        version="4.4.0",
        sha256="ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    ),
    Jar(
        group="io.delta",
        artifact="delta-kernel-defaults",
        version="4.4.0",
        sha256="225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    ),
    Jar(
        group="io.delta",
        artifact="delta-kernel-unitycatalog",
        version="4.4.0",
        sha256="cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    ),
    Jar(
        group="io.unitycatalog",
        artifact="unitycatalog-client",
        version="0.6.0",
        sha256="48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    ),
    # Hadoop's own file system starts a process for each permission it sets, some twenty per commit. This one
    # calls Java.
    Jar(
        group="com.globalmentor",
        artifact="hadoop-bare-naked-local-fs",
        version="0.1.0",
        sha256="e0cc30fb0531eb0b59468dc0abf5b257533d2365b5e9f45e795edd707aa78c62",
    ),
)


def jar_folder() -> Path:
    """Where the jars are kept: `STRANDLINE_JARS`, or the user's cache."""
    chosen = os.environ.get("STRANDLINE_JARS")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "strandline" / "jars"


def find_jars() -> tuple[Path, ...] | None:
    """The jars, if all are present as they were when last verified.

    Only names and sizes are compared, because this is called at every start.
    """
    folder = jar_folder()
    try:
        verified = json.loads((folder / MANIFEST).read_text())
        unchanged = all(
            verified.get(jar.file_name) == [jar.sha256, (folder / jar.file_name).stat().st_size]
            for jar in JARS
        )
    except (OSError, ValueError):
        return None
    return _paths(folder) if unchanged else None


def resolve_jars() -> tuple[Path, ...]:
    """The jars, each with the right checksum. Missing or broken ones are fetched.

    Two processes may do this at once.
    """
    from strandline.model.errors import OutsideError

    folder = jar_folder()
    missing = tuple(jar for jar in JARS if not _is_right(folder / jar.file_name, jar))
    try:
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / MANIFEST).unlink(missing_ok=True)  # it is no longer true
            _fetch(missing, folder)
        if find_jars() is None:
            _remember(folder)
    except OSError as error:
        raise OutsideError(
            f"The jars of Delta Lake cannot be stored in {folder}: {error}.",
            remedy="Make the folder writable, or name another one in STRANDLINE_JARS.",
            slug="jar-folder-not-writable",
        ) from error
    return _paths(folder)


def find_java_home() -> Path | None:
    """The home of a Java that Spark can run on.

    It is that of `JAVA_HOME`, of the `PATH`, or the oldest suitable one in /usr/lib/jvm.
    """
    chosen = os.environ.get("JAVA_HOME")
    for java in (Path(chosen, "bin", "java") if chosen else None, shutil.which("java")):
        if java and (suitable := _examine_java(java)):
            return suitable[1]
    installed = [
        suitable for java in Path("/usr/lib/jvm").glob("*/bin/java") if (suitable := _examine_java(java))
    ]
    return min(installed)[1] if installed else None


def _examine_java(java: str | Path) -> tuple[int, Path] | None:
    """Version and home of a Java.

    None if it is too old or lacks the vector module, which Spark needs at start.
    """
    command = [str(java), "--add-modules=jdk.incubator.vector", "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"java\.specification\.version = (\d+)\s*$", answer, re.MULTILINE)
    home = re.search(r"java\.home = (.+?)\s*$", answer, re.MULTILINE)
    if not version or not home or int(version[1]) < OLDEST_JAVA:
        return None
    return int(version[1]), Path(home[1])


def _fetch(jars: tuple[Jar, ...], folder: Path) -> None:
    """Resolve the jars into a scratch folder and move the right ones in: a reader never sees half a jar."""
    from strandline.model.errors import OutsideError

    with tempfile.TemporaryDirectory(prefix="resolving-", dir=folder) as scratch:
        for jar, resolved in zip(jars, _resolve(jars, Path(scratch)), strict=True):
            if not _is_right(resolved, jar):
                raise OutsideError(
                    f"{jar.coordinates} was resolved, but its checksum is not the expected {jar.sha256}.",
                    remedy="Clear what may contain a broken copy (~/.m2/repository, ~/.ivy2, a mirror)"
                    " and try again.",
                    slug="jar-with-wrong-checksum",
                )
            os.replace(resolved, folder / jar.file_name)


def _resolve(jars: tuple[Jar, ...], scratch: Path) -> list[Path]:
    """Let the resolver inside PySpark fetch the jars, without their dependencies, to a scratch folder."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    from strandline.model.errors import OutsideError

    java_home = find_java_home()
    if java_home is None:
        raise OutsideError(
            f"Spark needs Java {OLDEST_JAVA} or later, and none was found.",
            remedy="Install one (Debian, Ubuntu: openjdk-17-jre-headless), or set JAVA_HOME.",
            slug="java-missing",
        )
    os.environ["JAVA_HOME"] = str(java_home)  # the gateway reads it from nowhere else
    log = scratch / "resolver.log"
    try:
        with log.open("wb") as talk:
            gateway = launch_gateway(popen_kwargs={"stdout": talk, "stderr": talk})
            try:
                maven, option = gateway.jvm.org.apache.spark.util.MavenUtils, gateway.jvm.scala.Option
                nothing = gateway.jvm.scala.collection.immutable.List.newBuilder().result()
                stderr = gateway.jvm.java.lang.System.err
                settings = maven.buildIvySettings(option.empty(), option.apply(str(scratch)), False, stderr)
                coordinates = ",".join(jar.coordinates for jar in jars)
                maven.resolveMavenCoordinates(
                    coordinates, settings, option.empty(), False, nothing, False, stderr
                )
            finally:
                gateway.shutdown()
                gateway.proc.stdin.close()  # the JVM ends when this pipe does
                gateway.proc.wait()
    except (Py4JError, PySparkRuntimeError) as error:
        raise OutsideError(
            f"The jars of Delta Lake could not be resolved:\n{_reasons(log)}",
            remedy="Connect to the network once; behind a mirror, set DEFAULT_ARTIFACT_REPOSITORY to its"
            f" address, as for any Spark. Or copy the jars to {jar_folder()} from a machine that has them.",
            slug="jars-not-resolved",
        ) from error
    return [scratch / "jars" / f"{jar.group}_{jar.file_name}" for jar in jars]


def _reasons(log: Path) -> str:
    lines = [line.strip(" \t:") for line in log.read_text(errors="replace").splitlines()]
    errors = [line for line in lines if re.search("not found$|error|exception", line, re.IGNORECASE)]
    return "\n".join(f"    {line}" for line in dict.fromkeys(errors or lines[-5:]))


def _is_right(path: Path, jar: Jar) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


def _remember(folder: Path) -> None:
    """Record what was verified, for `find_jars`. A reader sees all of it or nothing."""
    manifest = {jar.file_name: [jar.sha256, (folder / jar.file_name).stat().st_size] for jar in JARS}
    unfinished = folder / f"{MANIFEST}.{os.getpid()}"
    unfinished.write_text(json.dumps(manifest, indent=1))
    os.replace(unfinished, folder / MANIFEST)


def _paths(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / jar.file_name for jar in JARS)


if __name__ == "__main__":
    from strandline.model.errors import OutsideError

    try:
        resolve_jars()
    except OutsideError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
