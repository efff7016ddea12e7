"""Whether an installed distribution works: run by the interpreter that it is installed for.

    python smoke.py cpythonplus|cpythonplus_lint|cpythonplus_sites [VERSION]

Imports all public modules, each of which only another package may be missing for, and runs the
commands.  Nothing but the standard library and the distribution itself is needed.
"""

import importlib
import pkgutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

INTEGRATIONS = {"billiard", "celery", "rq", "uwsgi"}
"""What modules are for that are imported beside that package only."""


class Broken(Exception):
    """One line that says what does not work."""


def import_all(package: str) -> tuple[int, set[str]]:
    """Import a package and all its public modules; how many, and which packages were missing."""
    done, missing = 1, set()
    paths = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(paths, f"{package}."):
        if any(part.startswith("_") for part in module.name.split(".")[1:]):
            continue
        try:
            importlib.import_module(module.name)
            done += 1
        except ModuleNotFoundError as error:
            if error.name not in INTEGRATIONS:
                raise
            missing.add(error.name)
    return done, missing


def run(expected: str, command: str, *arguments: str, status: int = 0) -> None:
    """Run a command of the environment; Broken unless it ends and prints as expected."""
    program = Path(sys.prefix, "bin", command)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != status or expected not in done.stdout + done.stderr:
        shown = " ".join([command, *arguments])
        raise Broken(f"{shown}: status {done.returncode}\n{done.stdout}{done.stderr}")


def main(package: str, number: str = "") -> str:
    """Return one line about what works."""
    name = package.replace("_", "-")
    if number and version(name) != number:
        raise Broken(f"{name} is installed in version {version(name)}, expected {number}")
    origin = importlib.import_module(package).__file__ or ""
    if not Path(origin).is_relative_to(sys.prefix):
        raise Broken(f"{package} was imported from {origin}, which is not the installed one")
    count, missing = import_all(package)
    if package == "cpythonplus":
        run(f"cpythonplus {version(name)} ", "cpythonplus", "--version")
        seen = "import cpythonplus.gil; print('scheduled', cpythonplus.gil.active())"
        run("scheduled True", "cpythonplus", "run", "-c", seen)
        run("pid ", "cpythonplus", "doctor", "run", "-c", "pass")
    elif package == "cpythonplus_lint":
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "bad.py").write_text("def f():\n    e = OSError()\n    raise e\n")
            run("CYC105", "cpythonplus-lint", folder, status=1)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "sites.toml"))
            run("", "cpythonplus-sites", "init", "--file", file)
            # Two sites with names, of which the rest has to be filled in.
            run("sites.first.gateway", "cpythonplus-sites", "check", "--file", file, status=2)
        run("usage", "cpythonplus-clock", "--help")
    left_out = f" (not installed: {', '.join(sorted(missing))})" if missing else ""
    return f"{count} modules imported{left_out}, its commands run"


if __name__ == "__main__":
    try:
        print(main(*sys.argv[1:]))
    except Broken as error:
        sys.exit(str(error))
