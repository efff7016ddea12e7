"""The help text of every option reads like the others: a phrase, not a sentence."""

import argparse
import re
from importlib import import_module

import pytest

from cpythonplus_sites.commands import sites

PHRASE = re.compile(r"[a-z`%][^\n]*[^\s.,;:]")


def test_an_action_has_a_phrase() -> None:
    assert all(map(PHRASE.fullmatch, sites.ACTIONS.values()))


@pytest.mark.parametrize("name", sites.ACTIONS)
def test_an_option_has_a_phrase(name: str) -> None:
    parser = argparse.ArgumentParser()
    import_module(f"cpythonplus_sites.commands.{name}").add_arguments(parser)
    for action in parser._actions:
        assert PHRASE.fullmatch(action.help or ""), action
