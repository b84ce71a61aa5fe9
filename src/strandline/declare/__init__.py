"""Loads a project.

In: YAML, SQL and Python. Out: `model.node.Project`, or every mistake at once, with file and line. No code of
the user is imported or run, and nothing here starts Spark. Must not import `plan`, `catalog`, `lake` or
anything above them.
"""

from .load import PROJECT_FILE, find_project_file, load_project

__all__ = ["PROJECT_FILE", "find_project_file", "load_project"]
