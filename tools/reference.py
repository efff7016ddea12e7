"""Renders the generated parts of the reference from docstrings, tables and parsers.

    python -m tools.reference           rewrites the pages that are not up to date, and names them
    python -m tools.reference --check   changes nothing; exit status 1 when a page is not up to date

The pages are docs/reference/, lint/docs/reference/ and docs/contributing/map.md, written by hand
but for what lies between `<!-- generated: NAME -->` and `<!-- end of generated -->`. NAME is `map
ROOM`, `policy limits`, `main help`,
`run help`, `top help`, `doctor help`, `doctor live help`, `doctor run help`, `doctor cycles help`,
`compare options`, `lint options`, `lint rules`, `environment keys`, `serve options`, or the dotted
name of a public class, function, method or object of the package. The installed package is what
is read; the text is the same on every version of Python. griffe would not do: written in C are the
classes of `threads` and `gil.atomic`, which it finds in the sources without a docstring or not at
all.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, ParamSpecArgs, ParamSpecKwargs

from cpythonplus import _interp
from cpythonplus._cli import main
from cpythonplus._cli.commands import compare, doctor, doctor_live, run, serve, top
from cpythonplus._cli.features import FEATURES
from cpythonplus._interp import LOSSES
from cpythonplus.gil._limits import LIMITS
from cpythonplus.prefork._options import OPTIONS
from cpythonplus_lint import RULES, command
from tools import arrows, results_page
from tools.results_page import PAGES, PageError
from tools.setup_env import LINT

_BLOCK = re.compile(
    r"(?P<head><!-- generated: (?P<name>[^>]+?) -->\n)"
    r".*?(?P<foot><!-- end of generated -->)",
    re.DOTALL,
)

_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+(?= )", re.MULTILINE)

# A docstring of C code begins with how it is called.
_CALL = re.compile(r"\w+\(\w*\)")
# The list in which it ends on the page says as much.
_TITLE = re.compile(r"^(?:Args|Attributes): ")
# Sentences that do not belong to the last of the entries in front of them.
_AFTER_ENTRIES = re.compile(r" (?=(?:Raises|Returns|A (?:limit|field) that is not given) )")
_STARS: dict[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
# Kept by the standard library for old programs, and by us for drop-ins' sake.
_OLD_NAMES = frozenset({"acquire_lock", "release_lock", "locked_lock", "isSet", "notifyAll"})


class UnknownNameError(PageError):
    """One line on what cannot be rendered."""


# ---- docstrings ---------------------------------------------------------------------------------


def annotation_text(annotation: object) -> str:
    """Return an annotation as it is written in a source, without module names."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)|~(?=\w)", "", text)  # ~T is a type variable


def signature(what: Callable[..., object]) -> str:
    """Return `(name: type = default, ...) -> type`, or nothing where there is no signature."""
    try:
        found = inspect.signature(what)
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    starred = False
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred |= parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY)
        text = _STARS.get(parameter.kind, "") + parameter.name
        if parameter.annotation is not parameter.empty and not _is_passed_on(parameter):
            text += f": {annotation_text(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            equals = "=" if parameter.annotation is parameter.empty else " = "
            text += f"{equals}{default_text(parameter.default)}"
        parts.append(text)
    result = f"({', '.join(parts)})"
    if found.return_annotation is not found.empty and not inspect.isclass(what):
        result += f" -> {annotation_text(found.return_annotation)}"
    return result


def _is_passed_on(parameter: inspect.Parameter) -> bool:
    """Whether it is `*args: P.args` or `**kwargs: P.kwargs`: what is passed on to a function."""
    return isinstance(parameter.annotation, ParamSpecArgs | ParamSpecKwargs)


def default_text(value: object) -> str:
    """Return a default's text; the object that stands for a dataclass's factory has no other."""
    return "..." if repr(value).startswith("<") else repr(value)


def fields_of(what: object) -> list[str]:
    """Return the names that the docstring of `what` may describe: its fields or its parameters."""
    fields = getattr(what, "__dataclass_fields__", None)
    if fields is not None:
        return list(fields)
    if not callable(what):
        return []
    try:
        return list(inspect.signature(what).parameters)
    except (TypeError, ValueError):
        return []


def markdown(docstring: str, names: Sequence[str]) -> str:
    """Return a docstring as Markdown; `name: what it is` of the `names` becomes a list entry."""
    code = "|".join(sorted(map(re.escape, names), key=len, reverse=True)) or "(?!)"
    entry = re.compile(rf"(?:^|(?<=[.;] )|(?<=[.;]  ))({code}): ")
    mention = re.compile(rf"(?<![\w`.])({code})(?![\w`(.=])")
    paragraphs = []
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        if all(_CALL.fullmatch(line) for line in paragraph.splitlines()):
            paragraphs.append(f"```text\n{paragraph}\n```")
            continue
        text = _TITLE.sub("", re.sub(r"[ \n]+", " ", paragraph.replace("``", "`")))
        pieces = entry.split(text)
        lines = [pieces[0].strip()] if pieces[0].strip() else []
        for name, said in zip(pieces[1::2], pieces[2::2], strict=True):
            what, *rest = _AFTER_ENTRIES.split(said.strip().rstrip(";."), maxsplit=1)
            lines.append(f"- `{name}`: {what.rstrip('.')}.")
            lines += ["", f"{rest[0]}."] if rest else []
        # Only what looks like an identifier: a field called `count` is an ordinary word elsewhere.
        paragraphs.append(
            "\n".join(
                mention.sub(lambda m: f"`{m[1]}`" if "_" in m[1] else m[1], line) for line in lines
            )
        )
    return "\n\n".join(paragraphs)


def resolve(name: str) -> object:
    """Return the object with this dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        try:
            return attrgetter(".".join(parts[length:]))(found) if parts[length:] else found
        except AttributeError:
            break
    raise UnknownNameError(f"there is nothing called {name}")


def documented(name: str) -> str:
    """Return the entry of one public name: what it looks like, and its docstring."""
    what = resolve(name)
    # getattr: the docstring of an object of the extension is its type's.
    docstring = getattr(what, "__doc__", None)
    if not docstring:
        raise UnknownNameError(f"{name} has no docstring")
    short = name.removeprefix("cpythonplus.")
    lines = [f"### {short}", ""]
    fields = getattr(what, "__dataclass_fields__", None)
    if fields is not None and isinstance(what, type):
        lines += ["```text", f"class {short}"]
        width = max(map(len, fields))
        lines += [
            f"    {field:<{width}}  {annotation_text(fields[field].type)}" for field in fields
        ]
        lines += ["```", ""]
    elif isinstance(what, type) and issubclass(what, Enum):
        lines += ["```text", f"class {short}"]
        lines += [f"    {member.name} = {member.value!r}" for member in what]
        lines += ["```", ""]
    elif isinstance(what, type) and issubclass(what, BaseException):
        lines += [
            "```text",
            f"exception {short}({what.__base__.__name__ if what.__base__ else ''})",
        ]
        lines += ["```", ""]
    elif isinstance(what, type):
        lines += ["```text", f"class {short}{signature(what)}", "```", ""]
    elif inspect.isroutine(what):
        lines += ["```text", f"{short}{signature(what)}", "```", ""]
    text = "\n".join([*lines, ""]) + markdown(docstring, fields_of(what)) + "\n"
    return text + members(what) if is_plain_class(what) else text


def is_plain_class(what: object) -> bool:
    """Whether `what` is a class whose entry has its methods: no value, no exception."""
    return (
        isinstance(what, type)
        and not issubclass(what, (BaseException, Enum))
        and not hasattr(what, "__dataclass_fields__")
    )


def members(what: object) -> str:
    """Return the attributes and methods that a class itself has; what it inherits stands there."""
    attributes: list[str] = []
    methods: list[str] = []
    for name, member in vars(what).items():
        docstring = getattr(member, "__doc__", None)
        if name.startswith("_") or name in _OLD_NAMES or not docstring:
            continue
        if inspect.isroutine(member):
            text = markdown(docstring, fields_of(member))
            methods.append(f"#### {name}{signature(member)}\n\n{text}\n")
        else:
            attributes.append(f"- `{name}`: {docstring}\n")
    return "\n".join(["", *filter(None, ["".join(attributes)]), *methods])


# ---- tables, command lines ----------------------------------------------------------------------


def policy_limits() -> str:
    """Return the fields of a policy with defaults and bounds."""
    rows = [("field", "default", "least", "greatest", "what for")]
    rows += [
        (f"`{x.name}`", f"{x.default:,}", f"{x.least:,}", f"{x.greatest:,}", x.purpose)
        for x in LIMITS
    ]
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first row is the heading."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def fenced(text: str) -> str:
    """Return `text` as a block that is shown as it is."""
    return f"```text\n{text.rstrip()}\n```\n"


class _Parser(argparse.ArgumentParser):
    """Keeps what is added to it: the layout of argparse's own help differs between versions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # argparse's own
        self.options: list[argparse.Action] = []
        super().__init__(*args, **kwargs)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:  # noqa: ANN401
        self.options.append(super().add_argument(*args, **kwargs))
        return self.options[-1]


def options_of(add_options: Callable[[argparse.ArgumentParser], None]) -> str:
    """Return the table of a command's arguments, from what adds them to a parser."""
    parser = _Parser()
    add_options(parser)
    rows = [("argument", "what it does")]
    for option in parser.options:
        if option.help == argparse.SUPPRESS:
            continue
        flags = ", ".join(option.option_strings)
        value = option.metavar or ("|".join(option.choices) if option.choices else "")
        is_help = "--help" in option.option_strings
        text = "show this message and exit" if is_help else option.help or ""
        rows.append((f"`{f'{flags} {value}'.strip()}`", text))
    return table(rows)


def lint_rules() -> str:
    """Return the rules of `cpythonplus-lint`: a table, then each with its explanation."""
    rows = [("code", "what it finds", "`--fix`")]
    rows += [
        (f"[{rule.code}](#{rule.code.lower()}-{rule.name})", rule.summary, rule.fixable or "no")
        for rule in RULES.values()
    ]
    parts = [table(rows)]
    for rule in RULES.values():
        off = "" if rule.on_by_default else "Off by default.\n\n"
        parts.append(f"### {rule.code} {rule.name}\n\n{off}{rule.explanation}")
    return "\n".join(parts)


def environment_keys() -> str:
    """Return the keys of CPYTHONPLUS_RUN."""
    rows = [
        ("key", "value"),
        ("`home`", "folder of the cpythonplus package that the runner belongs to"),
        ("`python`", "kind of interpreter that an extension must fit to, `cpython-313`"),
        ("`pid`", "of the process that `cpythonplus run` became"),
        ("`children`", "`1`: interpreters that the program starts are like it; `0`: they are not"),
    ]
    for feature in FEATURES:
        rows.append((f"`{feature.name}`", f"`1`; missing: off. {feature.summary}"))
        rows += [
            (f"`{feature.name}.{option.field}`", f"of `{option.flag}`")
            for option in feature.options
        ]
    return table(rows)


def serve_options() -> str:
    """Return the options of `cpythonplus serve` that gunicorn does not have."""
    rows = [("option", "what it does", "default", "in a configuration file", "in the environment")]
    rows += [
        (f"`{f'{word} {shape}'.strip()}`", text, "", "", "") for word, shape, text in serve.OWN
    ]
    for each in OPTIONS:
        default = str(each.default or "none") if each.shape else "on" if each.is_on else "off"
        text = f"Do not {each.text[0].lower()}{each.text[1:]}" if each.is_on else each.text
        names = (f"`{each.setting}`", f"`{each.variable}`")
        rows.append((f"`{f'{each.word} {each.shape}'.strip()}`", text, default, *names))
    return table(rows)


def facts_table() -> str:
    """Return what is known of private structures."""
    rows = [("fact", "versions", "structure", "how it is proven", "needed by")]
    for each in _interp.facts(ask=False):
        since, until = (".".join(map(str, version)) for version in (each.since, each.until))
        versions = since if since == until else f"{since} to {until}"
        rows.append((f"`{each.name}`", versions, each.what, each.proof, each.features))
    return table(rows)


def losses_table() -> str:
    """Return what each command does without a fact."""
    rows = [("fact", "command", "without it")]
    for name in LOSSES:
        for sentence in _interp.sentences(name):
            face, _, text = sentence.partition(": ")
            command = "run --show" if face == "run" else face
            rows.append((f"`{name}`", f"`{command}`", text))
    return table(rows)


MAP = PAGES.parent / "contributing" / "map.md"

RENDERERS: dict[str, Callable[[], str]] = {
    "policy limits": policy_limits,
    "main help": lambda: fenced(main.help_text()),
    "run help": lambda: fenced(run.help_text()),
    "top help": lambda: fenced(top.help_text()),
    "doctor help": lambda: fenced(doctor.help_text()),
    "doctor live help": lambda: fenced(
        "\n".join(map(doctor_live.help_text, doctor_live.EXAMINATIONS))
    ),
    "doctor run help": lambda: fenced(doctor.program_help_text("run")),
    "doctor cycles help": lambda: fenced(doctor.program_help_text("cycles")),
    "lint options": lambda: options_of(command.add_options),
    "compare options": lambda: options_of(compare.add_options),
    "lint rules": lint_rules,
    "environment keys": environment_keys,
    "facts": facts_table,
    "losses": losses_table,
    "serve options": serve_options,
    **{f"map {room}": partial(arrows.map_of, room) for room in arrows.ROOMS},
}


# ---- pages --------------------------------------------------------------------------------------


def rendered(page: str) -> str:
    """Return the text of a page with its generated parts made anew."""

    def fill(block: re.Match[str]) -> str:
        name = block["name"]
        body = RENDERERS[name]() if name in RENDERERS else documented(name)
        above = _HEADING.findall(_FENCED.sub("", _BLOCK.sub("", page[: block.start()])))
        body = below(body, len(above[-1]) if above else 2)
        return f"{block['head']}{body.rstrip()}\n{block['foot']}"

    return _BLOCK.sub(fill, page)


def below(text: str, level: int) -> str:
    """Return a text, whose headings begin with the third level, below one of `level`."""

    def moved(match: re.Match[str]) -> str:
        return "#" * (len(match[0]) + level - 2)

    parts = _FENCED.split(text)
    parts[::2] = [_HEADING.sub(moved, part) for part in parts[::2]]
    return "".join(parts)


def names_in(page: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return [block["name"] for block in _BLOCK.finditer(page)]


def made() -> dict[Path, str]:
    """Return the pages as they should be."""
    pages = sorted(PAGES.glob("*.md")) + sorted((LINT / "docs" / "reference").glob("*.md"))
    pages.append(MAP)
    return {path: rendered(path.read_text("utf-8")) for path in pages}


if __name__ == "__main__":
    sys.exit(results_page.main("reference", made))
