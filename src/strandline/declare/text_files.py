"""Files of the project that an entry names."""

from pathlib import Path

from strandline.model.errors import Place
from strandline.model.report import Report, find_nearest, suggest


def load_text(file: str, folder: Path, place: Place, report: Report) -> tuple[str, str] | None:
    """The name and the text of a file of the project.

    If it does not exist, the file with the nearest name is read. None if there is none.
    """
    path = folder / file
    try:
        return file, path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        report.add("file-not-text", f"`{file}` is not UTF-8.", "Save it as UTF-8.", place)
    except (OSError, ValueError) as error:
        if path.is_dir() or isinstance(error, PermissionError):
            what = f"`{file}` cannot be read: {getattr(error, 'strerror', error)}."
            report.add("file-not-found", what, "Name a file that can be read.", place)
            return None
        others = _files_like(path, folder)
        report.add(
            "file-not-found",
            f"there is no file `{file}` in the project.",
            suggest(file, others, "files"),
            place,
        )
        nearest = find_nearest(file, others)
        return load_text(nearest, folder, place, report) if nearest is not None and nearest != file else None
    return None


def _files_like(path: Path, folder: Path) -> list[str]:
    """Files of the project with the same suffix, outside hidden folders."""
    try:
        files = (p.relative_to(folder) for p in folder.rglob(f"*{path.suffix}"))
        return [
            str(p)
            for p, _ in zip(
                (p for p in files if not any(part.startswith(".") for part in p.parts)),
                range(500),
                strict=False,
            )
        ]
    except (OSError, ValueError):
        return []
