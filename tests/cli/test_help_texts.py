"""The help text of every option reads like the others: a phrase, not a sentence."""

import argparse
import re
from collections.abc import Callable

import pytest

from cpythonplus._cli.arguments import HELP_WIDTH
from cpythonplus._cli.commands import compare, doctor, doctor_live, run, top
from cpythonplus._cli.features import FEATURES, Option
from cpythonplus.prefork import _options as prefork_options
from cpythonplus_lint import command
from tests.cli.support import MODULE, environment, execute

PHRASE = re.compile(r"[a-z`%][^\n]*[^\s.,;:]")
SENTENCE = re.compile(r"[A-Z][^\n]*[^\s.,;:]\.")
"""As gunicorn has them, whose options `serve` shows beside its own."""


def texts(options: tuple[Option, ...]) -> dict[str, str]:
    return {option.flag: option.help for option in options}


COMMANDS = {
    **{f"run: {each.name}": texts(each.options) for each in FEATURES},
    **{f"doctor {each.name}": texts(each.options) for each in doctor_live.EXAMINATIONS},
    "run": texts((run.NO_CHILDREN, *run.OWN_OPTIONS)),
    "doctor": texts(doctor.OWN_OPTIONS),
    "top": texts(top.OPTIONS),
    "summaries": {
        **{each.name: each.summary for each in (*FEATURES, *doctor_live.EXAMINATIONS)},
        **doctor.PROGRAMS,
    },
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_has_a_phrase(command: str) -> None:
    wrong = {flag: text for flag, text in COMMANDS[command].items() if not PHRASE.fullmatch(text)}
    assert not wrong


@pytest.mark.parametrize("add_options", [compare.add_options, command.add_options])
def test_an_argument_has_a_phrase(
    add_options: Callable[[argparse.ArgumentParser], None],
) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    for action in parser._actions:
        assert PHRASE.fullmatch(action.help or ""), action


@pytest.mark.parametrize(
    "words",
    ["", "run", "serve", "compare", "facts", "doctor", "doctor run", "doctor cycles"]
    + [f"doctor {each.name}" for each in doctor_live.EXAMINATIONS],
)
def test_help_is_80_columns_wide(words: str) -> None:
    result = execute([*MODULE, *words.split(), "--help"], env=environment({"COLUMNS": "80"}))
    assert (result.status, result.stderr) == (0, b"")
    assert [line for line in result.out.splitlines() if len(line) > HELP_WIDTH] == []


def test_an_option_of_serve_has_a_sentence() -> None:
    for option in prefork_options.OPTIONS:
        assert SENTENCE.fullmatch(option.text), option.name
