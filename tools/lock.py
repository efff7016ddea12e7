"""Writes requirements/<group>.txt: the versions that environments get, and their files' hashes.

    python -m tools.lock [--keep]   asks the index; --keep: newer versions only where they must be
    python -m tools.lock --check    says which of them do not fit pyproject.toml, asking nobody

One file for each dependency group, with all that the group needs on every Python that is supported;
pip reads them (--require-hashes), and markers tell the Pythons apart.  The groups are solved
together, so several fit into one environment; those of cpythonplus-sites, which is for older
Pythons, too, and that of free-threaded builds each alone.  uv does the work; it is given pip's
index and certificates, and none of these is written into the files, nor is what PIP_FIND_LINKS
names.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.setup_env import lock_file, locked_groups

_HEAD = "# Written by `make lock`, for: "
_ANY = ("--universal", "--python-version", "3.11")
# pip installs these for another processor, and would ask the markers of its own machine.
_ONE = {"aarch64": ("--python-platform", "aarch64-manylinux_2_28", "--python-version", "3.11")}
# For Pythons that the rest is not for, whose newest versions are not the others'.
_ALONE: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("sites", "sites-old"), ("--universal", "--python-version", "3.9")
)
# Every environment has `build`, too, which is written first.
_WITH_BUILD = ("--constraint", str(lock_file("build")))
# An older gunicorn than the others': newer ones have no such worker.
_ALONE["eventlet"] = _ANY
_ALONE["free-threaded"] = ("--universal", "--python-version", "3.13", *_WITH_BUILD)


def _from_pip(name: str) -> str:
    """Return a setting of pip, from its environment or its files."""
    for section in ("global", "install"):
        command = [sys.executable, "-m", "pip", "config", "get", f"{section}.{name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return os.environ.get(f"PIP_{name.replace('-', '_').upper()}", "")


def _environment() -> dict[str, str]:
    """Return what uv finds in os.environ: the index that pip uses."""
    settings = {
        "UV_DEFAULT_INDEX": _from_pip("index-url"),
        "UV_INDEX": _from_pip("extra-index-url"),
        "SSL_CERT_FILE": _from_pip("cert"),
    }
    return {**os.environ, **{name: value for name, value in settings.items() if value}}


def _solve(
    requirements: Sequence[str], output: Path, *options: str, environment: Mapping[str, str]
) -> None:
    """Write the packages for `requirements` into `output`, whose versions are kept if they fit."""
    command = ["uv", "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate"]
    subprocess.run(
        [*command, "--generate-hashes", *options, "--output-file", str(output), "-"],
        input="\n".join(requirements),
        text=True,
        check=True,
        env=environment,
    )


def write(*, keep: bool) -> None:
    """Write all files anew."""
    groups = locked_groups()
    environment = _environment()
    with tempfile.TemporaryDirectory() as folder:
        everything, one = Path(folder, "everything.txt"), Path(folder, "one.txt")
        if keep:
            kept = (lock_file(name) for name in groups if name not in _ALONE)
            everything.write_text("".join(p.read_text() for p in kept if p.exists()))
        together = (entries for name, entries in groups.items() if name not in _ALONE)
        wanted = sorted({entry for entries in together for entry in entries})
        _solve(wanted, everything, *_ANY, environment=environment)
        for name, requirements in groups.items():
            one.unlink(missing_ok=True)
            if keep and name in _ALONE and lock_file(name).exists():
                one.write_text(lock_file(name).read_text())
            options = [*_ONE.get(name, _ANY), "--constraint", str(everything)]
            _solve(requirements, one, *_ALONE.get(name, options), environment=environment)
            lock_file(name).parent.mkdir(exist_ok=True)
            lock_file(name).write_text(_head(requirements) + one.read_text())
    for path in lock_file("").parent.glob("*.txt"):
        if path.stem not in groups:
            path.unlink()


def _head(requirements: Sequence[str]) -> str:
    return f"{_HEAD}{', '.join(requirements)}\n"


def stale() -> list[str]:
    """Return the groups whose file is not there, or was written for other requirements."""

    def head(path: Path) -> str:
        return path.read_text().partition("\n")[0] + "\n" if path.exists() else ""

    return [
        name for name, entries in locked_groups().items() if head(lock_file(name)) != _head(entries)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked for; 1 when a file does not fit or the index has no answer."""
    parser = argparse.ArgumentParser(prog="lock", description="The lock files of the environments")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="only say what does not fit")
    how.add_argument("--keep", action="store_true", help="newer versions only where they must be")
    options = parser.parse_args(arguments)
    if options.check:
        for name in stale():
            print(f"requirements/{name}.txt does not fit pyproject.toml: make lock")
        return 1 if stale() else 0
    try:
        write(keep=options.keep)
    except subprocess.CalledProcessError as error:
        return error.returncode  # uv has said why
    return 0


if __name__ == "__main__":
    sys.exit(main())
