"""Gets packages: their sources, which have the tests, and an environment with what they need."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tools.compat.packages import Package
from tools.setup_env import fingerprint

PLUGIN = Path(__file__).resolve().with_name("plugin.py")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


class FetchError(Exception):
    """One line that says which package could not be had, and why."""


def _pip(what: str, *arguments: str) -> None:
    done = subprocess.run(
        [*_PIP, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "rror" in line] or [done.stdout]
        raise FetchError(f"{what}: {errors[-1].strip()}")


def sdist(requirement: str, cache: Path) -> Path:
    """Return the archive of `name==version`, which pip downloads once."""
    name, _, version = requirement.partition("==")
    folder = cache / "sdists" / f"{name.lower()}-{version}"
    if not any(folder.glob("*.tar.gz")):
        folder.mkdir(parents=True, exist_ok=True)
        options = ("--no-deps", "--no-binary", name, "--dest", str(folder))
        _pip(f"the sources of {requirement}", "download", *options, requirement)
    return next(folder.glob("*.tar.gz"))


def unpacked(package: Package, cache: Path, folder: Path) -> Path:
    """Unpack the sources, and others that have the tests, beside each other; return the first."""
    requirements = [f"{package.name}=={package.version}", *package.sources]
    tops = []
    for requirement in requirements:
        with tarfile.open(sdist(requirement, cache)) as archive:
            archive.extractall(folder, filter="data")
            tops.append(folder / Path(archive.getnames()[0]).parts[0])
    return tops[-1]


def environment(package: Package, wheel: Path, cache: Path) -> Path:
    """Return a virtual environment with the package, its tests' needs and our wheel."""
    version = sys.version.split()[0]
    folder = cache / "environments" / version / package.environment_name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _set_up(package, wheel, folder)
    return folder


def _set_up(package: Package, wheel: Path, folder: Path) -> None:
    """Bring an environment up to date; what it was made of is noted in it, afterwards."""
    python, stamp = str(folder / "bin" / "python"), folder / "made-of.txt"
    named = [f"{package.name}=={package.version}", *package.requires]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    made_of = [fingerprint(sys.version, named), digest]
    before = stamp.read_text("utf-8").split() if stamp.exists() else ["", ""]
    stamp.unlink(missing_ok=True)
    if before[0] != made_of[0]:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        # One call: what one of them needs of another must fit.
        _install(package, python, str(wheel), *named)
    elif before[1] != digest:
        _install(package, python, "--no-deps", "--force-reinstall", str(wheel))
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.copyfile(PLUGIN, site / "cpythonplus_compat.py")
    stamp.write_text("\n".join(made_of), "utf-8")


def _install(package: Package, python: str, *arguments: Sequence[str] | str) -> None:
    _pip(
        f"installing {package.name}",
        "--python",
        python,
        "install",
        "--no-compile",
        *map(str, arguments),
    )
