"""The property_tax example, in a folder of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

_EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "property_tax"


def copy_example(folder: Path) -> Path:
    return Path(
        shutil.copytree(_EXAMPLE, folder, ignore=shutil.ignore_patterns("data", ".strandline", "__pycache__"))
    )


def generate_day(project: Path, day: int) -> None:
    subprocess.run(
        [sys.executable, "generate.py", str(day)], cwd=project, check=True, stdout=subprocess.DEVNULL
    )
