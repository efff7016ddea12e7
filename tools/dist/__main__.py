"""Makes the archives of a release in dist/, and checks them: `make dist`.

    python -m tools.dist [--only 3.13]... [--release]

The source archive has what git has, less what .gitattributes leaves out.  Each wheel is made from
that archive, by its own interpreter: those of this machine, and Debian sid's where tools/debian_folder.sh has
made them.  auditwheel gives a wheel the tag of the oldest C library that it runs with; target.py
installs it where no compiler is, and tries it.
"""

import argparse
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from tools.dist import target
from tools.dist.release import objections
from tools.dist.target import DistError as DistError
from tools.sbom import version
from tools.setup_env import BUILD, LINT, ROOT, SITES, headers_environment, lock_file

DIST = ROOT / "dist"
RAW = BUILD / "dist"
"""Wheels as they were built, before auditwheel; also in the copy of the checkout in Debian sid."""
TARGET = "tools/dist/target.py"
SID = ("3.14", "3.15")
NOT_IN_WHEELS = {".c", ".h", ".S", ".build"}
EXTRA = "serve"


@dataclass
class Row:
    """One archive, and what was found about it."""

    archive: Path
    contents: str
    checks: list[str] = field(default_factory=list)

    def cells(self) -> tuple[str, str, str, str]:
        """Return its line of the table."""
        size = f"{self.archive.stat().st_size / 1024:,.0f} KiB"
        return self.archive.name, size, self.contents, "; ".join(self.checks)


def run(*command: str | Path) -> str:
    """Run a command in the checkout and return what it printed; DistError where it fails."""
    return target.run(command, os.environ | headers_environment(), ROOT)


def say(text: str) -> None:
    """Print a line at once: others run beside it."""
    print(f"dist: {text}", flush=True)


def local_interpreters() -> dict[str, str]:
    """The newest of each minor version on this machine that can compile, with a GIL."""
    lines = run("bash", "-c", ". tools/ci_lib.sh; local_pythons").splitlines()
    probe = "import os, sysconfig; print(os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
    found = {}
    for full, python in (line.split(" ", 1) for line in lines):
        if full.endswith("t"):
            say(f"{full} is left out: free-threaded")
        elif run(python, "-I", "-c", probe) == "False":
            say(f"{full} is left out: it has no Python.h")
        else:
            found[".".join(full.split(".")[:2])] = python
    return found


def sid_interpreters() -> list[str]:
    """Those of Debian sid, where its folder is and may be used."""
    if os.geteuid() != 0:
        say("Debian sid's interpreters are left out: not root")
        return []
    found = []
    for minor in SID:
        try:
            run("tools/debian_folder.sh", "sid", "version", f"python{minor}")
            found.append(minor)
        except DistError:
            say(f"Debian sid's {minor} is left out: it is not there (tools/debian_folder.sh sid make)")
    return found


def source_files(sdist: Path, folder: str) -> set[str]:
    """The files of a source archive below a folder of it, without that in front."""
    with tarfile.open(sdist) as archive:
        names = [PurePosixPath(member.name) for member in archive if member.isfile()]
    inside = {str(PurePosixPath(*name.parts[1:])) for name in names}
    return {name.removeprefix(folder) for name in inside if name.startswith(folder)}


def check_sdist(sdist: Path, needed: Sequence[str]) -> str:
    """Return what is in a source archive, in short; DistError where it lacks a file."""
    names = source_files(sdist, "")
    if lacking := {*needed, "PKG-INFO", "LICENSE", "README.md", "pyproject.toml"} - names:
        raise DistError(f"{sdist.name} lacks {', '.join(sorted(lacking))}")
    tops = sorted({name.split("/")[0] + "/" for name in names if "/" in name})
    return f"{len(names)} files: {' '.join(tops)}"


def check_wheel(wheel: Path, sdist: Path, root: str = "src/") -> str:
    """Return what is in a wheel, in short; DistError unless it is all of the sources, and no more."""
    with zipfile.ZipFile(wheel) as archive:
        if broken := archive.testzip():
            raise DistError(f"{wheel.name}: {broken} is damaged")
        names = {name for name in archive.namelist() if not name.endswith("/")}
    package = wheel.name.split("-")[0]
    info = f"{package}-{wheel.name.split('-')[1]}.dist-info/"
    sources = {
        name.removeprefix(f"{package}/") if name.endswith((".pth", ".start")) else name
        for name in source_files(sdist, root)
        if PurePosixPath(name).suffix not in NOT_IN_WHEELS and not name.endswith("meson.build")
    }
    of_info = {name.removeprefix(info) for name in names if name.startswith(info)}
    libraries = {name for name in names if name.startswith(f"{package}/_native.") and name.endswith(".so")}
    wrong = sources - names, names - sources - libraries - {info + name for name in of_info}
    if any(wrong):
        raise DistError(f"{wheel.name} lacks {sorted(wrong[0])} and has besides {sorted(wrong[1])}")
    needed = {f"{package}/py.typed"}
    if "none" not in wheel.name:
        needed |= {f"{package}/_native.pyi", f"{package}.pth", f"{package}.start"}
        if len(libraries) != 1:
            raise DistError(f"{wheel.name} has {len(libraries)} extensions")
    if lacking := needed - names:
        raise DistError(f"{wheel.name} lacks {', '.join(sorted(lacking))}")
    if lacking := {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"} - of_info:
        raise DistError(f"{wheel.name} lacks {', '.join(sorted(lacking))} of its metadata")
    kinds = [f"{sum(name.endswith('.py') for name in names)} .py"]
    kinds += ["1 .so"] * len(libraries)
    kinds += [name.removeprefix(f"{package}/") for name in sorted(needed)]
    return ", ".join([*kinds, "LICENSE"])


def repair(wheel: Path) -> Path:
    """Give a wheel the tag of the C libraries that it runs with, and put it into dist/."""
    before = set(DIST.glob("*.whl"))
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel)
    prefix = "-".join(wheel.name.split("-")[:4])
    (repaired,) = (path for path in set(DIST.glob("*.whl")) - before if path.name.startswith(prefix))
    return repaired


def wheel_here(python: str, minor: str, sdist: Path) -> list[Row]:
    """A wheel by an interpreter of this machine."""
    out = RAW / minor
    run(python, TARGET, "build", sdist, lock_file("build"), out)
    (raw,) = out.glob("*.whl")
    wheel = repair(raw)
    row = Row(wheel, check_wheel(wheel, sdist))
    row.checks.append(run(python, TARGET, "check", wheel, EXTRA))
    say(wheel.name)
    return [row]


def wheels_in_sid(minors: Sequence[str], sdist: Path) -> list[Row]:
    """Wheels by the interpreters of Debian sid, which work on a copy of the checkout in there."""
    rows = []
    folder = RAW.relative_to(ROOT)
    run("tools/debian_folder.sh", "sid", "put", sdist, folder / sdist.name)
    for minor in minors:
        tag = f"cp{minor.replace('.', '')}"
        name = f"{sdist.name.removesuffix('.tar.gz')}-{tag}-{tag}-linux_{os.uname().machine}.whl"
        lock = lock_file("build").relative_to(ROOT)
        inside = ("tools/debian_folder.sh", "sid", "run", f"python{minor}", TARGET)
        run(*inside, "build", folder / sdist.name, lock, folder)
        (RAW / minor).mkdir(parents=True)
        run("tools/debian_folder.sh", "sid", "fetch", folder / name, RAW / minor / name)
        wheel = repair(RAW / minor / name)
        row = Row(wheel, check_wheel(wheel, sdist))
        run("tools/debian_folder.sh", "sid", "put", wheel, folder / wheel.name)
        row.checks.append(run(*inside, "check", folder / wheel.name, EXTRA))
        rows.append(row)
        say(wheel.name)
    return rows


def source_archive() -> Path:
    """The source archive of cpythonplus, in dist/."""
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST, ROOT)
    (sdist,) = DIST.glob("cpythonplus-*.tar.gz")
    say(sdist.name)
    return sdist


def pure_archives(folder: Path) -> list[Row]:
    """Both archives of a distribution in a folder of its own, which has no C."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, folder)
    (sdist,) = DIST.glob(f"cpythonplus_{folder.name}-*.tar.gz")
    (wheel,) = DIST.glob(f"cpythonplus_{folder.name}-*.whl")
    rows = [Row(sdist, check_sdist(sdist, ["sbom.cdx.json"])), Row(wheel, check_wheel(wheel, sdist))]
    rows[0].checks.append("installed: " + run(sys.executable, TARGET, "install", sdist))
    rows[1].checks.append(run(sys.executable, TARGET, "check", wheel))
    say(wheel.name)
    return rows


def make(only: Sequence[str]) -> list[Row]:
    """Make and check everything; of the wheels with C only those of some minor versions, if named."""
    for folder in (DIST, RAW):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    here = {minor: python for minor, python in local_interpreters().items() if minor in only or not only}
    wanted = [minor for minor in SID if minor not in here and (minor in only or not only)]
    in_sid = [minor for minor in sid_interpreters() if minor in wanted] if wanted else []
    if lacking := set(only) - {*here, *in_sid}:
        raise DistError(f"no interpreter here for {', '.join(sorted(lacking))}")
    sdist = source_archive()
    first = Row(sdist, check_sdist(sdist, ["meson.build", "meson.options", "sbom.cdx.json"]))

    def install_sdist() -> list[Row]:
        first.checks.append("installed: " + run(sys.executable, TARGET, "install", sdist, EXTRA))
        return []

    tasks: list[Callable[[], list[Row]]] = [lambda: wheels_in_sid(in_sid, sdist)] if in_sid else []
    tasks += [partial(wheel_here, python, minor, sdist) for minor, python in here.items()]
    tasks += [install_sdist, partial(pure_archives, LINT), partial(pure_archives, SITES)]
    # Two at a time: half of each is pip's waiting for the index.
    with ThreadPoolExecutor(2) as pool:
        rows = [row for done in pool.map(lambda task: task(), tasks) for row in done]
    rows = [first, *sorted(rows, key=lambda row: row.archive.name)]
    run(sys.executable, "-m", "twine", "check", "--strict", *(row.archive for row in rows))
    return rows


def table(rows: Sequence[Row]) -> str:
    """Return a line for each archive."""
    lines = [("archive", "size", "contents", "tried"), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archives; 1 where something is wrong with them."""
    parser = argparse.ArgumentParser(prog="make dist", description="The archives of a release")
    parser.add_argument("--only", action="append", default=[], metavar="3.x", help="of that version")
    parser.add_argument("--release", action="store_true", help="fail unless it may be released")
    options = parser.parse_args(arguments)
    against = objections()
    try:
        if not (against and options.release):
            rows = make(options.only)
            print(table(rows))
            say(f"version {version()}, {len(rows)} archives in dist/; twine check --strict: passed")
    except DistError as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    for each in against:
        say(f"not releasable: {each}")
    return 1 if against and options.release else 0


if __name__ == "__main__":
    sys.exit(main())
