"""Report what is wrong here and what to do. Changes nothing; ends with 1 when something needs action.

With --adopt, commits that are not Strandline's are accepted as they are, instead of rebuilding the tables
that contain them. What reads those tables follows in the next run. `verify` may report that they differ from
what their inputs give.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from strandline.app.doctor import examine
from strandline.app.finding import Finding, Result
from strandline.app.workspace import open_workspace
from strandline.model.errors import CallError
from strandline.pages.documents.doctor import findings_document

from .output import emit
from .quiet import quiet_spark


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--deep", action="store_true", help="read every byte of every file that is in use, too")
    what.add_argument(
        "--adopt", metavar="NAME", nargs="*", help="accept what others wrote to these datasets, or to all"
    )
    parser.add_argument("--reason", metavar="R", help="with --adopt: why; kept in the audit log")


def run(call: argparse.Namespace) -> int:
    if call.adopt is not None:
        return _adopt(call)
    if call.reason is not None:
        raise CallError(
            "`--reason` says why something is adopted.", remedy="Use it with `--adopt`.", slug="call"
        )
    findings = examine(Path(call.project), deep=call.deep)
    emit(
        call.output,
        "doctor",
        findings_document(findings),
        "findings",
        lambda: render_findings(findings),
    )
    return 1 if any(f.result is Result.WRONG for f in findings) else 0


def _adopt(call: argparse.Namespace) -> int:
    from strandline.app.adopt import adopt_foreign

    with open_workspace(Path(call.project)) as workspace, quiet_spark():
        done = adopt_foreign(workspace, call.adopt, reason=call.reason or "")
    adopted = [{**asdict(a), "versions": list(a.versions)} for a in done]
    lines = [
        f"{a.dataset}: version {', '.join(map(str, a.versions))} adopted by version {a.table_version},"
        f" {a.rows:,} rows."
        for a in done
    ]
    emit(call.output, "doctor", {"adopted": adopted}, "adopted", lambda: "\n".join(lines))
    return 0


def render_findings(findings: tuple[Finding, ...]) -> str:
    width = max((len(f.check) for f in findings), default=0)
    lines = []
    for finding in findings:
        first, *more = finding.what.splitlines() or [""]
        lines.append(f"{finding.result:5}  {finding.check:{width}}  {first}")
        lines += [f"{'':5}  {'':{width}}  {line}" for line in (*more, *finding.remedy.splitlines())]
    wrong = sum(1 for f in findings if f.result is Result.WRONG)
    return "\n".join(
        [
            *lines,
            "",
            "Nothing is wrong."
            if not wrong
            else f"{wrong} things need action."
            if wrong > 1
            else "1 thing needs action.",
        ]
    )
