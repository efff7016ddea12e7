"""Makes a reader's environment: the package, what the page installs, and nothing else.

`make try-docs` runs the examples there.  An environment is kept in build/try-docs, and serves all
pages that install the same.
"""

import fcntl
import json
import re
import shlex
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.docs.pages import ROOT

OURS = sys.executable
FOLDER = ROOT / "build" / "try-docs"
_PIP = re.compile(r"^(?:[$#] |    )(?:\S*python\S* -m |\S*/)?pip3? install (.*)$", re.MULTILINE)
_NEW_LINE = re.compile(r"\\\n")


def wheel() -> Path | None:
    """Return the wheel of which this environment was made."""
    text = distribution("cpythonplus").read_text("direct_url.json") or "{}"
    path = Path(unquote(urlsplit(json.loads(text).get("url", "")).path))
    return path if path.suffix == ".whl" and path.is_file() else None


def packages(text: str) -> set[str]:
    """Return what a page has its reader install, besides this package."""
    words = {
        word
        for arguments in _PIP.findall(_NEW_LINE.sub(" ", text))
        for word in shlex.split(arguments, comments=True)
    }
    others = {str(ROOT / other) for other in ("lint", "sites") if f"./{other}" in words}
    return others | {w for w in words if re.match(r"[A-Za-z]", w) and "cpythonplus" not in w}


def environment(page: Path) -> str:
    """Return the interpreter of the environment for a page, which is made where it is missing."""
    built = wheel()
    assert built is not None, "--as-typed needs the wheel of this environment: make try-docs"
    wanted = {f"{built}[serve]", *packages(page.read_text("utf-8"))}
    for other in ("lint", "sites"):
        if page.is_relative_to(ROOT / other):
            wanted.add(str(ROOT / other))
    content = [sys.version, *sorted(wanted), sha256(built.read_bytes()).hexdigest()]
    folder = FOLDER / sha256("\n".join(content).encode()).hexdigest()[:12]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "done"
        if not done.exists():
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder)],
                [str(folder / "bin" / "pip"), "install", "--quiet", *sorted(wanted)],
            ):
                subprocess.run(command, check=True)
            done.touch()
    return str(folder / "bin" / "python")
