"""What is wrong here and what to do. Changes nothing; ends with 1 when something needs action."""

import argparse
from pathlib import Path

from strandline.app.doctor import examine
from strandline.app.finding import Finding, Result

from .output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deep", action="store_true", help="read every byte of every file that is in use, too")


def run(call: argparse.Namespace) -> int:
    findings = examine(Path(call.project), deep=call.deep)
    emit(call.output, "doctor", {"findings": [_finding(f) for f in findings]}, "findings", lambda: render_findings(findings))
    return 1 if any(f.result is Result.WRONG for f in findings) else 0


def _finding(finding: Finding) -> dict[str, object]:
    return {"check": finding.check, "result": finding.result, "what": finding.what, "remedy": finding.remedy}


def render_findings(findings: tuple[Finding, ...]) -> str:
    width = max((len(f.check) for f in findings), default=0)
    lines = []
    for finding in findings:
        first, *more = finding.what.splitlines() or [""]
        lines.append(f"{finding.result:5}  {finding.check:{width}}  {first}")
        lines += [f"{'':5}  {'':{width}}  {line}" for line in (*more, *finding.remedy.splitlines())]
    wrong = sum(1 for f in findings if f.result is Result.WRONG)
    return "\n".join(
        [*lines, "", "Nothing is wrong." if not wrong else f"{wrong} things need action." if wrong > 1 else "1 thing needs action."]
    )
