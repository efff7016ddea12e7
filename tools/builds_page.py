"""Writes which builds of CPython the facts were proven on into docs/reference/facts.md.

    python -m tools.builds_page --ask      prints what is so of this interpreter, as JSON
    python -m tools.builds_page --record   asks this machine's interpreters, and Debian's as root
    python -m tools.builds_page            rewrites the table of the page
    python -m tools.builds_page --check    changes nothing; exit status 1 when it is outdated

What was found is kept in benchmarks/results/builds.json.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools import results_page

PAGE = results_page.PAGES / "facts.md"
RESULT = results_page.RESULTS / "builds.json"
FOLDERS = {
    "bookworm": ("Debian 12", ["python3.11"]),
    "trixie": ("Debian 13", ["python3.13"]),
    "sid": (
        "Debian sid",
        ["python3.13", "python3.14", "python3.14-dbg", "python3.15", "python3.15-dbg"],
    ),
}

Build = dict[str, Any]


def ask() -> Build:
    """Return what this interpreter is, and what became of each fact."""
    from cpythonplus import _interp, gil  # the packages that are judged are those of a wheel

    found = _interp.facts()
    try:
        gil.install()
        gil.uninstall()
        scheduling = ""
    except RuntimeError as error:
        scheduling = str(error)
    linked = "libpython" in Path("/proc/self/maps").read_text("utf-8")
    debug = ", debug" if hasattr(sys, "gettotalrefcount") else ""
    return {
        "python": platform.python_version() + sys.abiflags,
        "built": f"{'with' if linked else 'without'} libpython{debug}",
        "proven": sum(fact.state == "proven" for fact in found),
        "refused": {fact.name: fact.refusal for fact in found if fact.state == "refused"},
        "scheduling": scheduling,
    }


def _asked(command: Sequence[str], python: str) -> Build:
    ran = subprocess.run(
        [
            *command,
            "tools/in_env.sh",
            "--group",
            "build",
            "--",
            "python",
            "-m",
            __spec__.name,
            "--ask",
        ],
        cwd=results_page.ROOT,
        env=os.environ | {"PYTHON": python},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    build: Build = json.loads(ran.stdout)
    return build


def _of_this_machine() -> Iterator[Build]:
    listed = "set -eu; . tools/ci_lib.sh; local_pythons"
    pythons = subprocess.check_output(["bash", "-c", listed], cwd=results_page.ROOT, text=True)
    for line in pythons.splitlines():
        _, python = line.split(maxsplit=1)
        yield {"of": "pyenv" if ".pyenv" in Path(python).parts else "this machine"} | _asked(
            [], python
        )


def _of_folders() -> Iterator[Build]:
    if os.geteuid() != 0:
        print("builds_page: not root: Debian's folders are left out", file=sys.stderr)
        return
    for folder, (name, pythons) in FOLDERS.items():
        script = ["tools/debian_folder.sh", folder]
        subprocess.run([*script, "make"], cwd=results_page.ROOT, check=True, stdout=sys.stderr)
        for python in pythons:
            yield {"of": name} | _asked([*script, "run", "env", f"PYTHON={python}"], python)


def record() -> None:
    """Ask all, and keep what they say."""
    found = [*_of_this_machine(), *_of_folders()]
    found.sort(
        key=lambda build: (
            [int(part.rstrip("dt")) for part in build["python"].split(".")],
            build["of"],
        )
    )
    RESULT.write_text(json.dumps(found, separators=(",", ":")) + "\n", "utf-8")


def table(builds: Sequence[Build]) -> str:
    """Return a row for each build."""
    lines = [
        "| CPython | of | built | facts proven | refused | scheduling of the GIL |",
        "|---" * 6 + "|",
    ]
    for build in builds:
        refused = "; ".join(f"`{name}`: {why}" for name, why in build["refused"].items())
        lines.append(
            f"| {build['python']} | {build['of']} | {build['built']} | {build['proven']} |"
            f" {refused or 'none'} | {build['scheduling'] or 'yes'} |"
        )
    return "\n".join(lines)


def made() -> dict[Path, str]:
    """Return the page of what is recorded."""
    return results_page.page(PAGE, builds=table(json.loads(RESULT.read_text("utf-8"))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked for; status as results_page.main has it."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words == ["--ask"]:
        print(json.dumps(ask()))
        return 0
    if words == ["--record"]:
        record()
        words = []
    return results_page.main("builds_page", made, words)


if __name__ == "__main__":
    sys.exit(main())
