"""Which modules of the package are public, and which of them the site describes name by name."""

import ast
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent.parent / "src" / "cpythonplus"
# Not for a program's imports but named in its configuration, or a command.
BY_NAME = {
    "cpythonplus.tasklets.gunicorn",
    "cpythonplus.tasklets.migrate",
    "cpythonplus.prefork.gunicorn",
    "cpythonplus.prefork.multiprocessing.preload",
}
# Of these the standard modules' documentation holds.
STANDARD = {f"cpythonplus.tasklets.io.{name}" for name in ("select", "selectors", "socket", "ssl")}


def path_of(name: str) -> Path:
    """Return the file of a module."""
    path = PACKAGE.parent / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def public_modules() -> list[str]:
    """Return the names of the modules no part of whose name begins with an underscore."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return sorted(found)


def described_modules() -> tuple[list[str], dict[str, str]]:
    """Return the modules with a page of the site, and of the others what each is for.

    The others stand in a configuration, need another package, or are drop-ins for standard modules.
    """
    described: list[str] = []
    others: dict[str, str] = {}
    for name in public_modules():
        if name in BY_NAME | STANDARD or not _is_importable(name):
            docstring = ast.get_docstring(ast.parse(path_of(name).read_text("utf-8"))) or ""
            others[name] = " ".join(docstring.partition("\n\n")[0].split()).replace("``", "`")
        else:
            described.append(name)
    return described, others


def _is_importable(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("cpythonplus"):
            raise
        return False
    return True
