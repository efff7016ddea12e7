"""The part of `make dist` that one interpreter does, in environments that are made for it and removed.

    python target.py build SDIST LOCK FOLDER    a wheel from the source archive
    python target.py check WHEEL [EXTRA]        installs a wheel where no compiler is, and tries it
    python target.py install SDIST [EXTRA]      installs the source archive as a user does

Nothing but the standard library is needed: it runs by each interpreter that a wheel is for.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

SMOKE = Path(__file__).resolve().with_name("smoke.py")
COMPILERS = ("cc", "gcc", "clang", "c++", "g++", "tcc", "icx")


def clean(path: str) -> dict[str, str]:
    """Return this process's variables without what could reach into an environment."""
    dropped = {"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CPYTHONPLUS_RUN", "CC", "CFLAGS", "LDFLAGS"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PATH": path}


class DistError(Exception):
    """What is wrong with an archive, or which step failed."""


def run(command: Sequence[str | Path], variables: Mapping[str, str], folder: Path) -> str:
    """Run a command in a folder and return what it printed; DistError where it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise DistError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


@contextmanager
def environment() -> Iterator[tuple[Path, list[str | Path]]]:
    """Give a folder with a fresh environment in it, and the command that installs into that."""
    with tempfile.TemporaryDirectory(prefix="cpythonplus-dist-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        python = folder / "venv" / "bin" / "python"
        yield folder, [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def without_git(folder: Path) -> dict[str, str]:
    """Return the variables of an environment in a folder, where asking git for anything fails."""
    no_git = folder / "no-git"
    no_git.mkdir()
    (no_git / "git").write_text("#!/bin/sh\nexit 127\n")
    (no_git / "git").chmod(0o755)
    return clean(os.pathsep.join([str(no_git), str(folder / "venv" / "bin"), os.environ["PATH"]]))


def wanted(archive: Path, extra: str) -> str:
    """Return what pip installs an archive with an extra by."""
    return f"{archive}[{extra}]" if extra else str(archive)


def tried(archive: Path, folder: Path, variables: Mapping[str, str]) -> str:
    """Return what works of an archive that was installed into the environment of a folder."""
    name, number = archive.name.removesuffix(".tar.gz").split("-")[:2]
    python = folder / "venv" / "bin" / "python"
    return run([python, SMOKE, name, number], variables, folder)


def build(sdist: Path, lock: Path, out: Path) -> None:
    """Make a wheel from a source archive with the locked tools; pip unpacks it in a folder of its own."""
    with environment() as (folder, pip):
        variables = without_git(folder)
        run([*pip, "install", "--require-hashes", "--requirement", lock], variables, folder)
        make = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", out, sdist]
        run(make, variables, folder)


def install(sdist: Path, extra: str = "") -> str:
    """Install a source archive as a user does, and try it: pip fetches what it is built with."""
    with environment() as (folder, pip):
        variables = without_git(folder)
        run([*pip, "install", wanted(sdist, extra)], variables, folder)
        return tried(sdist, folder, variables)


def check(archive: Path, extra: str = "") -> str:
    """Install an archive with an extra where no compiler is, try it, and return what works."""
    with environment() as (folder, pip):
        variables = clean(str(folder / "venv" / "bin"))
        if found := [name for name in COMPILERS if shutil.which(name, path=variables["PATH"])]:
            raise DistError(f"{', '.join(found)} found, where no compiler was expected")
        only = ("--only-binary", ":all:")
        run([*pip, "install", *only, wanted(archive, extra)], variables, folder)
        return tried(archive, folder, variables)


def main(action: str, archive: str, *more: str) -> None:
    """Do what was asked for."""
    path = Path(archive).resolve()
    if action == "build":
        build(path, *(Path(each).resolve() for each in more))
    elif action == "install":
        print(install(path, *more))
    else:
        print(check(path, *more))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except DistError as error:
        sys.exit(str(error))
