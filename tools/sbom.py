"""Writes sbom.cdx.json, here, in lint/ and in sites/: what each distribution needs at run time.

In CycloneDX, with all extras.  cyclonedx-py looks into an environment that has
requirements/runtime.txt or sites.txt in it and nothing else, and for lint/ into an empty one.  No
distribution contains anybody else's code, but the zipapp of sites has tomli, which only older
Pythons need: it is listed whichever Python this is.  Versions are those that the tests run with,
and the hashes of their files stand in those lists.  Addresses of web pages are left out.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.setup_env import LINT, ROOT, SITES, lock_file, pyproject

SBOM = "sbom.cdx.json"


def version() -> str:
    """Return the version of cpythonplus, which meson.build has."""
    found = re.search(r"^  version: '(.+)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError("meson.build names no version")
    return found[1]


def _without_pages(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return a copy without `externalReferences`, on any level."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key != "externalReferences"}
        return {key: _without_pages(each) for key, each in kept.items()}
    return [_without_pages(each) for each in value] if isinstance(value, list) else value


def _for_any_python(lock: str) -> str:
    """Return a lock file's text without the markers that leave a package out on newer Pythons."""
    return re.sub(r" ; python_full_version < [^\\\n]+", " ", lock)


def write(root: Path, group: str | None, number: str) -> None:
    """Write the file of the distribution in a folder.

    group: what its lock file is called; None for a distribution that needs no other.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment, output = Path(folder, "environment"), Path(folder, "sbom.json")
        python = str(environment / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        install = [*pip, "--python", python, "install", "--no-compile", "--require-hashes"]
        look = ["cyclonedx-py", "environment", "--pyproject", str(root / "pyproject.toml")]
        look += ["--mc-type", "library", "--output-reproducible", "--spec-version", "1.6"]
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        if group is not None:
            locked = Path(folder, "locked.txt")
            locked.write_text(_for_any_python(lock_file(group).read_text()))
            subprocess.run([*install, "--requirement", locked], check=True)
        subprocess.run([*look, "--output-file", output, python], check=True)
        bom = _without_pages(json.loads(output.read_text()))
    package = bom["metadata"]["component"]
    package["version"] = number
    package["purl"] = f"pkg:pypi/{package['name']}@{number}"
    (root / SBOM).write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n")


def main() -> int:
    """Write the files; the status of the step that failed."""
    try:
        write(ROOT, "runtime", version())
        write(LINT, None, pyproject(LINT)["project"]["version"])
        write(SITES, "sites", pyproject(SITES)["project"]["version"])
    except subprocess.CalledProcessError as error:
        return error.returncode  # the step has said why
    return 0


if __name__ == "__main__":
    sys.exit(main())
