"""The package as a user sees it: what importing it brings, its names, its types."""

import pytest

from tests.support import run_child

io = pytest.importorskip("cpythonplus.tasklets.io", exc_type=ImportError)


def test_what_is_not_used_is_not_imported() -> None:
    run_child("""
import sys
from cpythonplus.tasklets import io, run

io.call_later(0.001, io.sleep, 0)
with io.timeout(10):
    io.sleep(0.001)
run()
unused = {"asyncio", "ssl", "socket", "select", "selectors", "threading"}
assert not unused & sys.modules.keys(), unused & sys.modules.keys()
io.StreamServer
assert not {"asyncio", "ssl"} & sys.modules.keys()
""")


def test_every_name_is_there_without_another_import() -> None:
    run_child("""
from cpythonplus.tasklets import io

for name in dir(io):
    getattr(io, name)
assert {"names", "select", "selectors", "socket", "ssl", "sleep"} <= set(dir(io))
try:
    io.nothing
except AttributeError as error:
    assert str(error) == "module 'cpythonplus.tasklets.io' has no attribute 'nothing'"
else:
    raise AssertionError
""")


@pytest.mark.parametrize("wrong", ["x", None, 1.5, object()])
def test_what_has_no_descriptor(wrong: object) -> None:
    for wait in (io.wait_readable, io.wait_writable):
        with pytest.raises(TypeError, match="expected a file descriptor or an object"):
            wait(wrong)
