"""What was found wrong."""

from collections.abc import Sequence

from strandline.app.finding import Finding


def findings_document(findings: Sequence[Finding]) -> dict[str, object]:
    return {"findings": [_finding(f) for f in findings]}


def _finding(finding: Finding) -> dict[str, object]:
    return {"check": finding.check, "result": finding.result, "what": finding.what, "remedy": finding.remedy}
