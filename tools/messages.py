"""The messages that users can meet, collected from the sources.

    python -m tools.messages [--all]

compares them with docs/reference/troubleshooting.md: messages that no entry covers, and entries
that no message has.  --all lists each message with its place first.

Collected are refusals, warnings and errors: what is raised, returned as an exception, logged or
printed as an error, and notes of what was skipped.  Left out is what a wrong argument of a function
raises (TypeError, and ValueError outside of `VALUES`): such a message names the argument itself.
"""

import ast
import difflib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"": ROOT / "src" / "cpythonplus", "lint/": ROOT / "lint" / "src" / "cpythonplus_lint"}
"""Each folder with what a message's place has in front."""
PAGE = ROOT / "docs" / "reference" / "troubleshooting.md"

ARGUMENT_ERRORS = {"TypeError", "AttributeError", "OverflowError", "_AnswerError"}
VALUE_ERRORS = {"ValueError", "LookupError"}
EXCEPTION = re.compile(r"\w+Error$|Unreachable$|UnsupportedPlatform$")
NOTE = "skipped: "
# Here a ValueError is the text of a refused option or setting.
VALUES = (
    "_base/text/sizes.py",
    "_base/switch.py",
    "_cli/",
    "gil/_limits.py",
    "memory/_no_cycles/",
    "prefork/_board/metrics.py",
    "prefork/_options.py",
)
CALLS = {"complain", "tell", "_tell", "_say", "warn", "warning", "error", "critical", "exception"}
C_CALLS = re.compile(
    r"\b(?:PyErr_SetString|PyErr_Format|PyErr_Warn\w+|fprintf|send_refusal|refuse|say|\w*FatalError"
    r"|plus_above\.deadlock)\s*\(|\bsnprintf\((?:\w+->)?reason\b"
    r"|\breturn(?:\s[^(]*|[^;]*\? NULL\s*:\s*)?$|\bwhy = $|static const char \w+\[\] = $"
)
C_ARGUMENT_ERRORS = re.compile(r"PyExc_(Type|Value|Attribute|Overflow|Deprecation)(Error|Warning)")
C_STRING = r'"(?:[^"\\\n]|\\.)*"'
C_STRINGS = re.compile(rf"{C_STRING}(?:\s*(?:[A-Z]\w+\s*)?{C_STRING})*")

# Whose message it is, and what an internal function returns for "no error".
NAME = re.compile(r"cpythonplus [a-z]+$|nothing is wrong$")


@dataclass(frozen=True)
class Message:
    """One message; what stands at run time in its gaps is `{}`."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return None


def _texts(node: ast.expr, assigned: dict[str, list[ast.expr]]) -> Iterator[str]:
    text = _text(node)
    if text is not None:
        yield text
    elif isinstance(node, ast.Name):
        for value in assigned.get(node.id, []):
            yield from _texts(value, {})
    elif isinstance(node, ast.BinOp | ast.IfExp | ast.Tuple):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _texts(child, assigned)


def _name(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _is_message(call: ast.Call, path: str, raised: set[ast.Call]) -> bool:
    name = _name(call.func)
    if call not in raised:
        return name in CALLS
    if name in VALUE_ERRORS:
        return path.startswith(VALUES)
    return name not in ARGUMENT_ERRORS


def _in_python(path: str, source: str) -> Iterator[Message]:
    nodes = list(ast.walk(ast.parse(source)))
    raised = {n.exc for n in nodes if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)}
    returned = [n.value for n in nodes if isinstance(n, ast.Return)]
    raised |= {n for n in returned if isinstance(n, ast.Call) and EXCEPTION.match(_name(n.func))}
    assigned: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    for node in nodes:
        if isinstance(node, ast.Constant) and str(node.value).startswith(NOTE):
            yield Message(f"{path}:{node.lineno}", str(node.value))
        if isinstance(node, ast.Call) and _is_message(node, path, raised):
            for argument in node.args:
                for text in _texts(argument, assigned):
                    yield Message(f"{path}:{node.lineno}", text)


def _in_c(path: str, source: str) -> Iterator[Message]:
    source = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), source, flags=re.DOTALL)
    for match in C_STRINGS.finditer(source):
        before = re.sub(C_STRING, '""', source[: match.start()][-400:])
        before = re.split(r"[;{}]", before)[-1]
        if C_CALLS.search(before) and not C_ARGUMENT_ERRORS.search(before):
            parts: list[str] = re.findall(r'"((?:[^"\\]|\\.)*)"', match[0])
            line = source.count("\n", 0, match.start()) + 1
            yield Message(f"{path}:{line}", "".join(parts).replace("\\n", "").replace('\\"', '"'))


def messages() -> list[Message]:
    """All messages of at least two words, gaps as `{}`."""
    found: list[Message] = []
    files = [
        (file, front + file.relative_to(folder).as_posix())
        for suffix in (".py", ".c")
        for front, folder in SOURCES.items()
        for file in sorted(folder.rglob(f"*{suffix}"))
    ]
    for file, path in files:
        collect = _in_python if file.suffix == ".py" else _in_c
        for each in collect(path, file.read_text("utf-8")):
            text = re.sub(r"%(?:\([a-z]+\))?[-.\d]*z?[a-zA-Z]", "{}", each.text)
            text = " ".join(text.split())
            if len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and " " in text and not NAME.match(text):
                found.append(Message(each.place, text))
    return found


def entries(page: str) -> list[str]:
    """The fragments that the first column of the page's tables quotes, in code spans."""
    rows = re.findall(r"^\|([^|]*)\|.*\|$", page, re.MULTILINE)
    return [fragment for row in rows for fragment in re.findall(r"`([^`]+)`", row)]


def covers(entry: str, message: Message) -> bool:
    """Whether an entry's fragment is in a message; `…` in it stands for anything."""
    pattern = ".*".join(map(re.escape, entry.split("…")))
    return re.search(pattern, message.text) is not None


def differences(found: list[Message], page: str) -> list[str]:
    """What has to be changed on the page, a line each; empty when page and sources agree."""
    keys = entries(page)
    dead = [key for key in keys if not any(covers(key, each) for each in found)]
    bare = [each for each in found if not any(covers(key, each) for key in keys)]
    lines = []
    for each in bare:
        near = difflib.get_close_matches(each.text, dead, 1, 0.3)
        hint = f"; reworded from {near[0]!r}?" if near else ""
        lines.append(f"no entry covers {each}{hint}")
    for key in dead:
        near = difflib.get_close_matches(key, [each.text for each in bare], 1, 0.3)
        hint = f"; now {near[0]!r}?" if near else ""
        lines.append(f"no message has {key!r}{hint}")
    return lines


def main() -> int:
    """Print the differences; status 1 if there are any."""
    found = messages()
    if "--all" in sys.argv[1:]:
        print("\n".join(map(str, found)))
    wrong = differences(found, PAGE.read_text("utf-8") if PAGE.exists() else "")
    print("\n".join(wrong) or f"{len(found)} messages, all covered")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
