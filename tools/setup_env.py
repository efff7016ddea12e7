"""Makes a virtual environment with the wheels of this repository in it, and runs a command there.

    python tools/setup_env.py [--group NAME]... [--variant asan|lies|tsan] -- COMMAND [ARG...]

Run by the interpreter that the environment is for, with nothing but the standard library. Each step
is left out when its inputs are as they were at the last run: the environment (.venv-<version>), the
packages of the groups, the wheel. Inputs are compared by content, so a check-out of another commit,
a deleted file or a touched one does the right thing. The wheel is built in build/<version> and
installed as a user would get it, never editable.

Packages are those of requirements/<group>.txt, which tools/lock.py writes: pip takes no other
version and no file with another hash.

uv would not spare the stamps: `uv pip install FOLDER` builds and installs it anew each time, and
does so while a run uses what it takes away. Besides, it would have to be fetched first.
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LINT, SITES = ROOT / "lint", ROOT / "sites"  # distributions of their own

# The test hooks are never in a released wheel, but always in the one that the tests see.
VARIANTS = {
    "": ["-Dtest_hooks=true", "-Dbuildtype=release"],
    "lies": ["-Dtest_hooks=true", "-Dbuildtype=release", "-Dlies=true"],
    "asan": [
        "-Dtest_hooks=true",
        "-Dbuildtype=debugoptimized",
        "-Db_sanitize=address,undefined",
        "-Db_lundef=false",
    ],
    "tsan": [
        "-Dtest_hooks=true",
        "-Dbuildtype=debugoptimized",
        "-Db_sanitize=thread",
        "-Db_lundef=false",
    ],
}
# The build back end's own hook (PEP 517); older pips cannot pass a setting more than once.
BUILD_WHEEL = """\
import json, mesonpy, sys
mesonpy.build_wheel(sys.argv[1], json.loads(sys.argv[2]))
"""


class SetupError(Exception):
    """One line that says what could not be done."""


def fingerprint(*parts: object) -> str:
    """Short text that differs when any of the parts does."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def sources_fingerprint() -> str:
    """Of every file that can change the wheel or the test programs."""
    paths = [ROOT / name for name in ("meson.build", "meson.options", "pyproject.toml")]
    paths += [ROOT / name for name in ("README.md", "LICENSE")]
    paths += (ROOT / "src").rglob("*")
    paths += (p for p in (ROOT / "tests").rglob("*") if p.suffix in {".c", ".h", ".build"})
    return files_fingerprint(paths)


def files_fingerprint(paths: Iterable[Path]) -> str:
    """Of the names and contents of files; folders and compiled modules among the paths are not."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def pyproject(folder: Path) -> dict[str, Any]:
    """The tables of a distribution's pyproject.toml."""
    with (folder / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def locked_groups() -> dict[str, list[str]]:
    """What each lock file is for: a group's own requirements, sorted.

    Those of the project are in every environment, as the group `build` is. `runtime` is what users
    get with all extras that are more than a comparison, `sites` what those of the distribution in
    sites/ get; the one in lint/ needs nothing.
    """
    top = pyproject(ROOT)
    project, table = top["project"], top["dependency-groups"]
    groups = {name: {entry for entry in table[name] if isinstance(entry, str)} for name in table}
    extras = project.get("optional-dependencies", {})
    groups["build"] |= {*project["dependencies"]}
    groups["runtime"] = {*project["dependencies"], *extras.get("serve", [])}
    groups["sites"] = {*pyproject(SITES)["project"]["dependencies"]}
    return {name: sorted(entries) for name, entries in groups.items() if entries}


def members(name: str) -> Iterator[str]:
    """The groups with requirements of their own that make up a dependency group."""
    table = pyproject(ROOT)["dependency-groups"]
    if "t" in sys.abiflags and name in {"test", "bench"}:
        name = "free-threaded"  # no marker of a requirement tells such a build
    if name not in table:
        raise SetupError(f"pyproject.toml has no dependency group {name!r}")
    if any(isinstance(entry, str) for entry in table[name]):
        yield name
    for entry in table[name]:
        if not isinstance(entry, str):
            yield from members(entry["include-group"])


def lock_file(group: str) -> Path:
    """The packages of a group with all that they need, each with its version and its hashes."""
    return ROOT / "requirements" / f"{group}.txt"


def check_compiler() -> None:
    """SetupError where no compiler is found, or one without the C library's headers."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    probe = [*compiler, "-E", "-include", "stdio.h", "-x", "c", os.devnull]
    try:
        works = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    if not works:
        name = " ".join(compiler)
        raise SetupError(f"{name} is no working C compiler (Debian: apt-get install gcc libc6-dev)")


def headers_environment() -> dict[str, str]:
    """Where the interpreter came without headers: the ones that tools/fetch_headers.sh fetched."""
    if Path(sysconfig.get_path("include"), "Python.h").exists():
        return {}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    include = BUILD / "headers" / version / "usr" / "include"
    paths = [str(include / f"python{version}"), str(include)]
    if os.environ.get("CPATH"):
        paths.append(os.environ["CPATH"])
    return {"CPATH": os.pathsep.join(paths)}


class Environment:
    """One virtual environment, its build folder, and the stamps that say what it was made from."""

    def __init__(self, variant: str) -> None:
        version = platform.python_version() + sys.abiflags
        self.tag = f"{version}-{variant}" if variant else version
        self.folder = ROOT / f".venv-{self.tag}"
        self.build = BUILD / self.tag
        self.python = self.folder / "bin" / "python"
        self.setup_args = VARIANTS[variant]
        self._stamps = self.folder / "stamps.json"
        self._log = BUILD / f"setup-{self.tag}.log"

    def variables(self) -> dict[str, str]:
        """What a command that runs in it finds in os.environ."""
        # A PYTHONPATH would hide the installed package; a stray start-up hook would run in pip.
        # Without bytecode on disk each child of a test would compile all that it imports.
        dropped = {"PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "CPYTHONPLUS_RUN"}
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return kept | {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(self.folder),
            "CPYTHONPLUS_BUILD_DIR": str(self.build),
        }

    def set_up(self, groups: list[str]) -> None:
        """Does what has to be done; SetupError names the step that failed and its log."""
        base = fingerprint(sys.version, os.path.realpath(sys.executable))
        self._step("venv", base, f"making {self.folder.name}", self._make)
        # The build tools are always in it: the wheel is built without an environment of its own.
        # What earlier calls asked for stays, so that `test` and `check` do not undo each other.
        earlier = {line.split()[0] for line in self._read().get("locks", "").splitlines()}
        wanted = {"build", *(name for name in earlier if lock_file(name).exists())}
        for group in groups:
            wanted.update(members(group))
        locks = {name: lock_file(name) for name in sorted(wanted)}
        if lacking := [name for name, path in locks.items() if not path.exists()]:
            raise SetupError(f"there is no requirements/{lacking[0]}.txt: make lock")
        self._step(
            "locks",
            "\n".join(f"{name} {fingerprint(path.read_text())}" for name, path in locks.items()),
            f"installing requirements/{{{','.join(locks)}}}.txt",
            lambda: self._pip("--require-hashes", *(f"-r{path}" for path in locks.values())),
        )
        self._step(
            "wheel",
            fingerprint(sources_fingerprint(), self.setup_args),
            "building and installing the wheel",
            self._install_wheel,
        )
        for other in (LINT, SITES):
            self._step(
                other.name,
                files_fingerprint([other / "pyproject.toml", *(other / "src").rglob("*")]),
                f"installing cpythonplus-{other.name}",
                partial(self._install_other, other),
            )

    def _read(self) -> dict[str, str]:
        try:
            stamps = json.loads(self._stamps.read_text())
        except (OSError, ValueError):
            return {}
        return {str(name): str(value) for name, value in stamps.items()}

    def _step(self, name: str, inputs: str, what: str, work: Callable[[], None]) -> None:
        if self._read().get(name) == inputs:
            return
        print(f"setup: {self.tag}: {what}", file=sys.stderr, flush=True)
        work()
        # Written after the work: what was interrupted is done again.
        self._stamps.write_text(json.dumps(self._read() | {name: inputs}, indent=1))

    def _run(self, what: str, *command: str) -> None:
        with self._log.open("w") as log:
            status = subprocess.run(
                command,
                cwd=ROOT,
                env=self.variables() | headers_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        if status != 0:
            sys.stderr.write("".join(self._log.read_text().splitlines(keepends=True)[-40:]))
            raise SetupError(f"{what} failed (whole log: {self._log.relative_to(ROOT)})")

    def _make(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._run("making the environment", sys.executable, "-m", "venv", str(self.folder))

    def _pip(self, *arguments: str) -> None:
        # Most modules of what is installed are never imported: those that are get compiled then.
        options = ("--quiet", "--disable-pip-version-check", "--no-compile")
        self._run("pip install", str(self.python), "-m", "pip", "install", *options, *arguments)

    def _install_other(self, folder: Path) -> None:
        self._pip("--no-deps", "--force-reinstall", "--no-build-isolation", str(folder))

    def _install_wheel(self) -> None:
        if sys.platform == "linux":
            check_compiler()
        wheels = self.build / "wheel"
        shutil.rmtree(wheels, ignore_errors=True)
        wheels.mkdir(parents=True)
        settings = json.dumps({"build-dir": str(self.build), "setup-args": self.setup_args})
        self._run("the build", str(self.python), "-c", BUILD_WHEEL, str(wheels), settings)
        (wheel,) = wheels.glob("*.whl")
        # With --no-compile pip knows nothing of the bytecode: its folders would stay, and a module
        # that has gone would be found as a namespace.
        for installed in self.folder.glob("lib/python*/site-packages/cpythonplus"):
            shutil.rmtree(installed)
        self._pip("--no-deps", "--force-reinstall", str(wheel))


def main() -> NoReturn:
    """Sets up, then becomes the command."""
    parser = argparse.ArgumentParser(description="Run a command in an environment with the wheel.")
    parser.add_argument("--group", action="append", default=[], help="dependency group to install")
    parser.add_argument("--variant", choices=VARIANTS, default="", help="how the wheel is built")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    environment = Environment(options.variant)
    BUILD.mkdir(exist_ok=True)
    try:
        # One at a time: two make calls side by side would install into each other's half-made one.
        with (BUILD / f"setup-{environment.tag}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            environment.set_up(options.group)
    except SetupError as error:
        sys.exit(f"setup: {environment.tag}: {error}")
    variables = environment.variables()
    program = shutil.which(options.command[0], path=variables["PATH"])
    if program is None:
        sys.exit(f"setup: {environment.tag}: there is no command {options.command[0]}")
    sys.stderr.flush()
    os.execve(program, options.command, variables)


if __name__ == "__main__":
    main()
