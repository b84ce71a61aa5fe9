"""How it is said: YAML, SQL and Python come in; `model.node.Project` goes out, or every mistake at once, with file and line.

Nothing of the user's is imported or run, and nothing here starts Spark. Must not import `plan`, `catalog`, `lake` or anything above them.
"""

from .load import PROJECT_FILE, find_project_file, load_project

__all__ = ["PROJECT_FILE", "find_project_file", "load_project"]
