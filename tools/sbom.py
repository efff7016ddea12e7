"""Writes sbom.cdx.json: what the package needs at run time, with all its extras, in CycloneDX.

cyclonedx-py looks into an environment that has requirements/runtime.txt in it and nothing else; the
extension itself contains nobody else's code.  Versions are those that the tests run with, and the
hashes of their files stand in that list.  Addresses of web pages are left out.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools.setup_env import ROOT, lock_file  # found by the path above

SBOM = ROOT / "sbom.cdx.json"


def version() -> str:
    """Return the package's own version, which meson.build has."""
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


def main() -> int:
    """Write the file; the status of the step that failed."""
    with tempfile.TemporaryDirectory() as folder:
        environment, output = Path(folder, "environment"), Path(folder, "sbom.json")
        python = str(environment / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        install = [*pip, "--python", python, "install", "--no-compile", "--require-hashes"]
        look = ["cyclonedx-py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
        look += ["--mc-type", "library", "--output-reproducible", "--spec-version", "1.6"]
        try:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
            subprocess.run([*install, "--requirement", lock_file("runtime")], check=True)
            subprocess.run([*look, "--output-file", output, python], check=True)
        except subprocess.CalledProcessError as error:
            return error.returncode  # the step has said why
        bom = _without_pages(json.loads(output.read_text()))
    package = bom["metadata"]["component"]
    package["version"] = version()
    package["purl"] = f"pkg:pypi/cpythonplus@{version()}"
    SBOM.write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
