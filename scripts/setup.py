"""Make a fresh clone ready to run: uv, the Python packages, Java, the jars of Delta Lake.

`make setup` calls this script. It uses only the standard library. Each step checks first and works only if
something is missing, so a second call takes a second and does not use the network.
"""

import sys

# This check comes before anything that an older Python cannot read.
if sys.version_info < (3, 11):  # noqa: UP036  the minimum of the package does not hold for whoever starts this script
    sys.exit(
        f"Strandline needs Python 3.11 or later; this is {sys.version.split()[0]}. "
        "Install one, then: make setup PYTHON=python3.11"
    )

import hashlib
import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "strandline-setup"
PRIVATE_UV = Path.home() / ".cache" / "strandline" / "uv"
JARS_MODULE = ROOT / "src" / "strandline" / "spark" / "jars.py"
NEEDS_THE_USER = 3


def main() -> None:
    started = time.monotonic()
    sync_packages()
    jars = load_jars_module()
    java_home = require_java(jars)
    environment = os.environ | {"JAVA_HOME": str(java_home)}
    if jars.find_jars() is None:
        say(f"resolving Delta's jars into {jars.jar_folder()}")
    # -P keeps the modules beside that file from hiding those of the standard library.
    if subprocess.run(
        [VENV / "bin" / "python", "-P", JARS_MODULE], env=environment, stdin=subprocess.DEVNULL
    ).returncode:
        sys.exit(NEEDS_THE_USER)
    runs([str(VENV / "bin" / "python"), "-m", "compileall", "-q", str(ROOT / "src")])
    archive = [str(VENV / "bin" / "python"), "-m", "strandline.lake.warm_up"]
    if subprocess.run(archive, env=environment, stdin=subprocess.DEVNULL, capture_output=True).returncode:
        say("the class-data archive could not be made: Spark starts without it, a few seconds slower")
    say(f"ready in {time.monotonic() - started:.1f} s: .venv/bin/strandline")


def sync_packages() -> None:
    """Install the packages of uv.lock, unless they are installed."""
    inputs = (ROOT / "uv.lock", ROOT / "pyproject.toml")
    # The folder is part of the mark. Otherwise a copied clone would run the sources of the original.
    wanted = hashlib.sha256(b"\0".join([*(path.read_bytes() for path in inputs), bytes(ROOT)])).hexdigest()
    complete = all((VENV / "bin" / name).exists() for name in ("python", "strandline"))
    if complete and STAMP.exists() and STAMP.read_text() == wanted:
        return
    sync = [require_uv(), "sync", "--frozen", "--quiet", "--compile-bytecode", "--python", sys.executable]
    say("installing Python packages")
    if subprocess.run([*sync, "--offline"], cwd=ROOT, capture_output=True).returncode:
        stop_unless(
            subprocess.run(sync, cwd=ROOT).returncode == 0,
            "The packages of uv.lock could not be installed; uv says why above.",
        )
    STAMP.write_text(wanted)


def require_uv() -> str:
    """A uv that runs: the user's, or a private one that does not touch any other Python."""
    own = PRIVATE_UV / "bin" / "uv"
    for found in (shutil.which("uv"), str(own)):
        if found and runs([found, "--version"]):
            return found
    say(f"installing uv into {PRIVATE_UV}")
    shutil.rmtree(PRIVATE_UV, ignore_errors=True)
    # A target folder is allowed where the system's Python forbids any other install. Without pip, a private
    # environment provides one.
    if not runs([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(PRIVATE_UV), "uv"]):
        shutil.rmtree(PRIVATE_UV, ignore_errors=True)
        runs([sys.executable, "-m", "venv", str(PRIVATE_UV)])
        runs([str(PRIVATE_UV / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"])
    stop_unless(
        runs([str(own), "--version"]),
        "uv is missing and could not be installed. Install it (pip install uv), then: make setup",
    )
    return str(own)


def load_jars_module() -> ModuleType:
    """The module that names the jars and finds Java, loaded by its path because its package imports Spark."""
    spec = importlib.util.spec_from_file_location("strandline_jars", JARS_MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def require_java(jars: ModuleType) -> Path:
    home: Path | None = jars.find_java_home()
    # Not every release of Debian and Ubuntu has both.
    for package in ("openjdk-17-jre-headless", "openjdk-21-jre-headless"):
        if home is None and apt_install(package):
            home = jars.find_java_home()
    stop_unless(
        home is not None,
        f"Spark needs Java {jars.OLDEST_JAVA} or later, "
        "with the module jdk.incubator.vector, and none was found.\n"
        "  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless\n"
        "  Fedora:          sudo dnf install java-21-openjdk-headless\n"
        "  macOS:           brew install openjdk@17\n"
        "Or set JAVA_HOME to one. Then: make setup",
    )
    assert home is not None
    return home


def apt_install(*packages: str) -> bool:
    """Install Debian packages, where that is possible without asking for a password."""
    prefix: list[str] = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (prefix and not runs([*prefix, "true"])):
        return False
    say(f"installing {' '.join(packages)} with apt-get")
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    runs([*apt, "update"])
    return runs([*apt, "install", "-y", "--no-install-recommends", *packages])


def runs(command: Sequence[str]) -> bool:
    """Whether a command succeeds.

    Its output is hidden. The caller reports a failure in its own words when nothing else can be tried.
    """
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
    except OSError:
        return False


def stop_unless(condition: bool, text: str) -> None:
    if not condition:
        print(text, file=sys.stderr)
        sys.exit(NEEDS_THE_USER)


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    main()
