"""Makes dist/cpythonplus-sites.pyz: cpythonplus-sites as one file, which one copies to a gateway.

    python -m tools.sites_zipapp [FILE]

For Python 3.9 and later.  tomli, which is needed before 3.11, is in it: the version of
requirements/sites.txt, by its hash, and without the compiled form.  Nothing is compressed, and all
have one time: the bytes depend on the sources alone, and no zlib is needed to read them.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.setup_env import ROOT, SITES, lock_file

PACKAGE = SITES / "src" / "cpythonplus_sites"
TARGET = ROOT / "dist" / "cpythonplus-sites.pyz"
SHEBANG = b"#!/usr/bin/env python3\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The first time that an archive of this format can have."""
MAIN = """\
import sys

if sys.version_info < (3, 9):
    sys.exit("cpythonplus-sites requires Python 3.9 or later; this is %d.%d" % sys.version_info[:2])
from cpythonplus_sites.commands.sites import main

sys.exit(main())
"""
# Of the oldest Python that it is for; pip would look at the markers with its own.
PIP = ("--no-deps", "--no-compile", "--only-binary=:all:", "--platform=any", "--implementation=py")


def files(tomli: Path) -> Iterator[tuple[str, bytes]]:
    """Give the names in the archive and what is in them; tomli: a folder with that package."""
    yield "__main__.py", MAIN.encode()
    yield "LICENSE", (SITES / "LICENSE").read_bytes()
    for package, name in ((PACKAGE, PACKAGE.name), (tomli, "tomli")):
        for path in package.rglob("*.py"):
            yield f"{name}/{path.relative_to(package).as_posix()}", path.read_bytes()
    for path in tomli.parent.glob("tomli-*.dist-info/**/LICENSE*"):
        yield "tomli/LICENSE", path.read_bytes()


def write(target: Path, tomli: Path) -> None:
    """Write the archive, with the package in the folder `tomli`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in sorted(files(tomli)):
                member = zipfile.ZipInfo(name, LONG_AGO)
                member.create_system = 3  # Unix, also where it is made elsewhere
                member.external_attr = 0o644 << 16
                archive.writestr(member, data)
    target.chmod(0o755)


def locked_tomli(folder: Path) -> Path:
    """Have pip put tomli into a folder, and return where the package is."""
    locked = folder / "locked.txt"
    locked.write_text(re.sub(r" ; [^\\\n]+", " ", lock_file("sites").read_text()))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *PIP]
    where = ["--require-hashes", f"--requirement={locked}", f"--target={folder / 'packages'}"]
    subprocess.run([*pip, "--python-version=3.9", *where], check=True)
    return folder / "packages" / "tomli"


def main(arguments: list[str]) -> int:
    """Make the file; the status of pip where that fails."""
    target = Path(arguments[0]) if arguments else TARGET
    with tempfile.TemporaryDirectory() as folder:
        try:
            write(target, locked_tomli(Path(folder)))
        except subprocess.CalledProcessError as error:
            return error.returncode  # pip has said why
    print(f"{os.path.relpath(target)}: {target.stat().st_size / 1024:,.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
