"""Runs tests on Pythons that cpythonplus is not for: lint/ on 3.10, sites/ on 3.9 and 3.10.

    python -m tools.old_pythons [PYTEST_ARGS...]

Each that is on PATH or in pyenv's folder gets an environment in build/sites-old, with the packages
of requirements/sites-old.txt.  The tests of sites/ are written for newer Pythons: they run from a
copy in which annotations are not evaluated and `match` is spelled with `if`.  What is slow needs
machines of its own, and is left out: it runs beside the other tests.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.setup_env import BUILD, LINT, ROOT, SITES, fingerprint, lock_file

OLD = ("3.9", "3.10")
FOLDER = BUILD / "sites-old"
FUTURE = "from __future__ import annotations\n"
SETTINGS = "sites/tests/old-pythons.ini"
LINT_SINCE = "3.10"
# These call the linter's cases, which use cpythonplus.
CALLING = "not test_what_is_hit and not test_fixed_functions"
# They are about what is not copied, or need packages of the other tests.
LEFT_OUT = ("test_shared_source.py", "test_zipapp.py")


def interpreters(versions: Iterable[str] = OLD) -> Iterator[tuple[str, str]]:
    """Give the versions that are here, each with its interpreter."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in versions:
        found = sorted(home.glob(f"versions/{version}.*/bin/python{version}"))
        path = str(found[-1]) if found else shutil.which(f"python{version}")
        if path is not None and _runs(path):
            yield version, path


def _runs(path: str) -> bool:
    """Whether it is more than a shim for a version that is not there."""
    try:
        return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class _WithoutMatch(ast.NodeTransformer):
    """Spells `match` with `if`: for sequences of words, of which the rest may be captured."""

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        """Return the subject's assignment, and the branches."""
        self.generic_visit(node)
        subject = f"_subject_{node.lineno}"
        branches: list[ast.stmt] = []
        for case in reversed(node.cases):
            tests = [ast.unparse(each) for each in [case.guard] if each is not None]
            condition = " and ".join([*self._tests(case.pattern, subject), *tests]) or "True"
            test = ast.parse(condition, mode="eval").body
            branches = [ast.If(test, case.body, branches)]
        target = ast.Name(subject, ast.Store())
        return [ast.Assign([target], node.subject, lineno=node.lineno), *branches]

    def _tests(self, pattern: ast.pattern | None, value: str) -> list[str]:
        match pattern:
            case ast.MatchAs(pattern=None, name=None) | ast.MatchStar(name=None):
                return []
            case ast.MatchAs(pattern=inner, name=None | str() as name):
                # A list with one element is true, whatever that is.
                return [*(self._tests(inner, value) if inner else []), f"[{name} := {value}]"]
            case ast.MatchStar(name=name):
                return [f"[{name} := list({value})]"]
            case ast.MatchValue(value=word):
                return [f"{value} == {ast.unparse(word)}"]
            case ast.MatchOr(patterns=patterns):
                ways = [" and ".join(self._tests(each, value)) or "True" for each in patterns]
                return [f"({' or '.join(f'({way})' for way in ways)})"]
            case ast.MatchSequence(patterns=patterns):
                return [f"isinstance({value}, (tuple, list))", *self._of_sequence(patterns, value)]
        raise NotImplementedError(ast.dump(pattern) if pattern else "")

    def _of_sequence(self, patterns: list[ast.pattern], value: str) -> list[str]:
        stars = [i for i, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
        count = len(patterns) - len(stars)
        tests = [f"len({value}) {'>=' if stars else '=='} {count}"]
        for index, each in enumerate(patterns):
            behind = len(patterns) - index - 1
            if stars and index == stars[0]:
                place = f"{value}[{index}:len({value}) - {behind}]"
            else:
                place = f"{value}[{-behind - 1 if stars and index > stars[0] else index}]"
            tests += self._tests(each, place)
        return tests


def spelled_for_3_9(source: str) -> str:
    """Return the source with annotations that are not evaluated, and without `match`."""
    tree = ast.parse(source)
    if not any(isinstance(node, ast.Match) for node in ast.walk(tree)):
        return source if FUTURE in source else _below_docstring(source, tree)
    text = ast.unparse(ast.fix_missing_locations(_WithoutMatch().visit(tree)))
    return text if FUTURE in text + "\n" else _below_docstring(text, ast.parse(text))


def _below_docstring(source: str, tree: ast.Module) -> str:
    """Put the import behind the docstring, or in front."""
    has_one = ast.get_docstring(tree) is not None
    lines = source.splitlines(keepends=True)
    end = tree.body[0].end_lineno if has_one else 0
    return "".join([*lines[:end], FUTURE, *lines[end:]])


def copy_tests() -> None:
    """Put what the tests are, and look at, into the folder."""
    shutil.rmtree(FOLDER / "copy", ignore_errors=True)
    shared = [ROOT / "tests" / name for name in ("damage.py", "support.py")]
    for path in [*(SITES / "tests").rglob("*"), *shared]:
        copied = FOLDER / "copy" / path.relative_to(ROOT)
        if path.suffix in {".py", ".ini"} and path.name not in LEFT_OUT:
            copied.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8")
            copied.write_text(spelled_for_3_9(text) if path.suffix == ".py" else text, "utf-8")
    for name in ("sites/docs", "sites/src", "sites/pyproject.toml", "docs", "src", "CHANGELOG.md"):
        (FOLDER / "copy" / name).symlink_to(ROOT / name)


def environment(version: str, python: str) -> Path:
    """Return the interpreter of an environment with the locked packages, made where it is not."""
    folder, locked = FOLDER / f"venv-{version}", lock_file("sites-old")
    stamp, wanted = folder / "stamp", fingerprint(locked.read_text(), os.path.realpath(python))
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, "install", "--require-hashes", f"-r{locked}"], check=True)
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def run(python: Path, root: Path, package: Path, *arguments: str) -> bool:
    """Run tests below a folder, with a distribution's sources; whether they passed."""
    command = [str(python), "-m", "pytest", "-c", str(root / SETTINGS), "--rootdir", str(root)]
    command += ["-q", "-p", "no:cacheprovider", *arguments]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(package / "src")])}
    return subprocess.run(command, check=False, cwd=root, env=variables).returncode == 0


def main(arguments: list[str]) -> int:
    """Run the tests on each; 1 where some fail, 2 where there is no such Python."""
    here = list(interpreters())
    copy_tests()
    failed = []
    for version, path in here:
        python = environment(version, path)
        print(f"old-pythons: {version}: sites", flush=True)
        passed = run(python, FOLDER / "copy", SITES, "-m", "not slow", *arguments, "sites/tests")
        if version == LINT_SINCE:
            print(f"old-pythons: {version}: lint", flush=True)
            passed &= run(python, ROOT, LINT, "-k", CALLING, *arguments, "lint/tests")
        failed += [version] * (not passed)
    for version in failed:
        print(f"old-pythons: {version} failed", file=sys.stderr)
    if not here:
        print(f"old-pythons: there is no Python {' or '.join(OLD)}", file=sys.stderr)
        return 2
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
