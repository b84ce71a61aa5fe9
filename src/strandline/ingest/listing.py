"""The files of a source as they are listed now: path, size, modification time. No file is opened."""

import glob
import os
import stat
from pathlib import Path

from strandline.model.files import FileSeen


def list_files(pattern: str, folder: str) -> tuple[FileSeen, ...]:
    """Files that match a source's glob, by path.

    Inside the project a path is relative, so that it may be moved.

    A name that is not text is shown with `\\xNN`. No file has that name, so a run refuses this file alone.
    """
    root = Path(folder)
    files = []
    for name in glob.glob(str(root / pattern), recursive=True):  # noqa: PTH207 - the pattern may be absolute
        path = Path(name)
        try:
            status = path.stat()
        except OSError:  # removed since it was listed, or a link to nowhere
            continue
        if stat.S_ISREG(status.st_mode) and not path.name.startswith((".", "_")):
            files.append(
                FileSeen(path=_relative(path, root), size=status.st_size, modified_ns=status.st_mtime_ns)
            )
    return tuple(sorted(files, key=lambda f: f.path))


def _relative(path: Path, root: Path) -> str:
    relative = Path(os.path.relpath(path, root)).as_posix() if path.is_relative_to(root) else path.as_posix()
    return os.fsencode(relative).decode("utf-8", errors="backslashreplace")
