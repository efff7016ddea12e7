"""CPython's own tests of dict and of mappings, with dicts of ours in the place of every display."""

import json
from importlib.util import find_spec

import pytest

from tests.support import run_child

pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.skipif(
        find_spec("test.test_dict") is None or find_spec("test.mapping_tests") is None,
        reason="without Python's own tests (Debian: libpython3-testsuite)",
    ),
]

# `{...}`, comprehensions and calls of dict() become calls of `ours()`; `dict` may be ours.
PROGRAM = """
import ast, importlib.util, io, json, sys, types, unittest
from cpythonplus import memory


def shared(plain):
    '''Whatever it is, a dict behind two with the same keys, which are what is shared.'''
    for _ in range(3):
        row = next(memory.share_keys([plain]))
    return row


KIND, OURS = {"shared": (dict, shared), "compact": (memory.CompactDict,) * 2}[sys.argv[1]]


class Replacing(ast.NodeTransformer):
    def visit_Dict(self, node):
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("ours", ast.Load()), [node], []), node)

    visit_DictComp = visit_Dict

    def visit_Name(self, node):
        if node.id == "dict" and KIND is not dict:
            return ast.copy_location(ast.Name("ours", node.ctx), node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "dict":
            return self.visit_Dict(node)
        return node


def rewritten(name):
    spec = importlib.util.find_spec(name)
    tree = Replacing().visit(ast.parse(spec.loader.get_source(name)))
    module = types.ModuleType(name)
    module.__file__, module.ours = spec.origin, OURS
    sys.modules[name] = module
    exec(compile(ast.fix_missing_locations(tree), spec.origin, "exec"), vars(module))
    return module


mapping_tests = rewritten("test.mapping_tests")
test_dict = rewritten("test.test_dict")


class Mappings(mapping_tests.TestHashMappingProtocol):
    type2test = KIND

    def _full_mapping(self, data):
        return OURS(dict(data))


if KIND is not dict:
    vars(test_dict).pop("FrozenDictTests", None)  # of another type
suite = unittest.defaultTestLoader.loadTestsFromModule(test_dict)
suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Mappings))
result = unittest.TextTestRunner(io.StringIO()).run(suite)
wrong = {test.id().rpartition(".")[2]: text for test, text in result.errors + result.failures}
print(json.dumps([result.testsRun, wrong]))
"""


def run(kind: str) -> dict[str, str]:
    """Return what failed, by its name."""
    child = run_child(PROGRAM, args=[kind], timeout=180)
    ran, wrong = json.loads(child.out.splitlines()[-1])
    assert ran > 100
    return dict(wrong)


def test_dicts_that_share_their_keys() -> None:
    assert run("shared") == {}


_NAME = "compares with text that has the name of dict, or none"
_DISPLAY = "counts the hashes of a key in a display, which is a dict before it becomes ours"

# What asks for a dict itself, or for what is another thing on purpose.
KNOWN = {
    "test_getitem_knownhash": "a function of the interpreter for dicts alone",
    "test_store_evilattr": "an instance's __dict__ must be a dict",
    "test_items": _NAME,
    "test_keys": _NAME,
    "test_values": _NAME,
    "test_repr": _NAME,
    "test_reversed_dict_after_clear_and_restore": "deleted entries lose their places",
    "test_setdefault_atomic": _DISPLAY,
    "test_setitem_atomic_at_resize": _DISPLAY,
    "test_track_dynamic": "the collector itself lets go of a dict with nothing of interest",
}


def test_a_compact_dict() -> None:
    wrong = run("compact")
    assert {name: text for name, text in wrong.items() if name not in KNOWN} == {}
