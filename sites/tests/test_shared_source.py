"""Files that this distribution shares with cpythonplus are copies; tests/base tests them."""

import inspect
from types import ModuleType

import pytest

from cpythonplus._base import files as their_files
from cpythonplus._base.text import visible as their_visible
from cpythonplus_sites import files, visible

pytestmark = pytest.mark.any_version


@pytest.mark.parametrize(("ours", "theirs"), [(files, their_files), (visible, their_visible)])
def test_it_is_the_same_in_both(ours: ModuleType, theirs: ModuleType) -> None:
    assert ours.__file__ != theirs.__file__
    assert inspect.getsource(ours) == inspect.getsource(theirs)
