"""An environment for each report: its packages as pinned, the tools, and this project's package."""

import hashlib
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from benchmarks.memory.reports.catalogue import Report

__all__ = ["NotInstalledError", "python_of"]

TOOLS = ("guppy3==3.1.5", "memray==1.20.0", "objgraph==3.6.2", "rich==14.0.0")


class NotInstalledError(Exception):
    """The packages of a report cannot be had for this interpreter."""


def python_of(report: Report, folder: Path) -> Path:
    """Return the interpreter of a report's environment, which is made where it is missing."""
    wanted = "\n".join([*report.packages, *TOOLS])
    version = ".".join(map(str, sys.version_info[:2]))
    home = folder / f"{report.name}-{version}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"
    python = home / "bin" / "python"
    if not (home / "done").exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        made = subprocess.run(
            [*command, *report.packages, *TOOLS], stderr=subprocess.PIPE, text=True, check=False
        )
        if made.returncode:
            raise NotInstalledError(made.stderr.strip().splitlines()[-1])
        (home / "done").touch()
    _copy_ours(home)
    return python


def _copy_ours(home: Path) -> None:
    """Copy the package as it is installed here: what is measured is what was built."""
    here = Path(sysconfig.get_path("platlib"))
    there = next((home / "lib").glob("python3.*")) / "site-packages"
    for source in [here / "cpythonplus", *here.glob("cpythonplus-*.dist-info")]:
        shutil.rmtree(there / source.name, ignore_errors=True)
        shutil.copytree(source, there / source.name)
    for source in here.glob("cpythonplus*.pth"):
        shutil.copy2(source, there)
