"""Adds up JUnit reports: a line for each test that failed, at last 'N passed, N failed, N skipped'.

    python tools/ci_totals.py REPORT...

A report that is missing or broken is a run that did not come to its end: it counts as one failure.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def count(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of one report."""
    try:
        # The reports are our own, written a minute ago.
        suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314
    except (OSError, ET.ParseError) as error:
        print(f"{report.name}: no report: {error}")
        return 0, 1, 0

    def total(attribute: str) -> int:
        return sum(int(suite.get(attribute, "0")) for suite in suites)

    for case in [case for suite in suites for case in suite.iter("testcase")]:
        for wrong in (*case.iter("failure"), *case.iter("error")):
            said = next(iter((wrong.get("message") or "").splitlines()), "")
            print(f"  {case.get('classname')}::{case.get('name')}: {said[:200]}")
    failed = total("failures") + total("errors")
    skipped = total("skipped")
    passed = max(total("tests") - failed - skipped, 0)
    print(f"{report.stem}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed, failed, skipped


def main(arguments: list[str]) -> int:
    """Prints the counts; 1 when a test failed or none passed."""
    counts = [count(Path(argument)) for argument in arguments]
    passed, failed, skipped = (sum(column) for column in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
