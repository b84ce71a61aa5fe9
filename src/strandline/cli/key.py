"""Make an access key of the server, and print it once, with the line for the project file.

The line has the key's hash and not the key, so it can be committed. Put it under `settings.serve.keys`.
"""

import argparse

from strandline.app.key import NewKey, make_key
from strandline.model.serving import Role

from .output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="who will use it; the audit log has this name")
    parser.add_argument(
        "--role",
        metavar="ROLE",
        required=True,
        choices=[str(role) for role in Role],
        help="`read`, `ingest` (post facts) or `operate` (both, and everything else)",
    )


def run(call: argparse.Namespace) -> int:
    made = make_key(call.name, Role(call.role))
    document = {
        "name": made.name,
        "role": made.role,
        "key": made.key,
        "sha256": made.sha256,
        "line": made.line,
    }
    emit(call.output, "key", {"keys": [document]}, "keys", lambda: render_key(made))
    return 0


def render_key(made: NewKey) -> str:
    return "\n".join(
        [
            f"The access key of `{made.name}`, which is not shown again:",
            "",
            f"  {made.key}",
            "",
            "The line for the project file, under `settings.serve.keys`:",
            "",
            f"  {made.line}",
        ]
    )
