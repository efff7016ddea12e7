"""What is read of a parked tasklet's frames: never more than they own, all where that is known."""

import dis
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from tests.support import compile_c, interp_sources, run_child

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that has the extension frames_probe."""
    folder = tmp_path_factory.mktemp("frames")
    sources = [HERE / "frames_probe.c", *interp_sources()]
    include = f"-I{sysconfig.get_path('include')}"
    compile_c(folder / "frames_probe.so", sources, "-shared", "-fPIC", "-DNDEBUG", include)
    return folder


@pytest.fixture(scope="module")
def probe(folder: Path) -> ModuleType:
    """Return the extension, for what cannot crash."""
    spec = importlib.util.spec_from_file_location("frames_probe", folder / "frames_probe.so")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestOwned:
    @pytest.mark.slow
    @pytest.mark.parametrize("check", ["check_shapes", "check_endings"])
    def test_visits_are_references(self, folder: Path, check: str) -> None:
        run_child(
            f"""
            import sys
            sys.path[:0] = [{str(folder)!r}, {str(HERE)!r}]
            import frame_shapes
            frame_shapes.{check}()
            """
        )


class TestChain:
    def test_positions(self, probe: ModuleType) -> None:
        def generate() -> Iterator[list[tuple[CodeType, int]]]:
            yield probe.positions()

        def outer() -> list[tuple[CodeType, int]]:
            return next(generate())

        found = outer()
        line = generate.__code__.co_firstlineno
        assert found[:2] == [(generate.__code__, line + 1), (outer.__code__, line + 4)]
        assert found[2][0] is sys._getframe().f_code

    def test_nesting_counts_entries_from_c(self, probe: ModuleType) -> None:
        def nested(times: int) -> int:
            if times:
                return next(map(nested, [times - 1]))
            found: int = probe.nesting()
            return found

        assert [nested(times) - nested(0) for times in range(4)] == [0, 1, 2, 3]

    def test_frame_object(self, probe: ModuleType) -> None:
        frame = probe.frame_object()
        assert frame is sys._getframe()
        assert frame.f_back is sys._getframe(1)

    def test_may_not_move_with_a_frame_object(self, folder: Path) -> None:
        run_child(
            f"""
            import sys
            sys.path.insert(0, {str(folder)!r})
            import frames_probe

            def generate():
                yield frames_probe.may_move()

            assert frames_probe.may_move()
            assert (lambda: frames_probe.may_move())()
            assert not next(generate())
            frames_probe.frame_object()
            assert not frames_probe.may_move()
            """
        )


# ---- the depth of the operand stack, against a slow computation ---------------------------------

ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"}
JUMPS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
Site = tuple[int, int, int, int, int, int, int, int]
CALL, FOR, SEND, EXIT = range(4)
GENERATORS = 0x20 | 0x80 | 0x200
ASYNC_GENERATOR = 0x200


def effect(instruction: dis.Instruction, *, jump: bool) -> int:
    """How many values the instruction leaves more than it takes."""
    if instruction.opname == "EXTENDED_ARG":
        return 0
    has_argument = instruction.opcode >= dis.HAVE_ARGUMENT
    return dis.stack_effect(
        instruction.opcode, instruction.arg if has_argument else None, jump=jump
    )


def depths(code: CodeType) -> dict[int, int]:
    """Depth before each instruction that can be reached, by its offset."""
    instructions = {it.offset: it for it in dis.get_instructions(code)}
    offsets = list(instructions)
    following = dict(pairwise(offsets))
    entries: list[Any] = vars(dis.Bytecode(code))["exception_entries"]
    found: dict[int, int] = {}
    counts_sent = sys.version_info < (3, 13) and code.co_flags & GENERATORS
    todo = [(0, 1 if counts_sent else 0), *((it.target, it.depth + it.lasti + 1) for it in entries)]
    while todo:
        offset, depth = todo.pop()
        if offset in found:
            assert found[offset] == depth
            continue
        found[offset] = depth
        it = instructions[offset]
        if it.opname not in ENDS | JUMPS:
            todo.append((following[offset], depth + effect(it, jump=False)))
        if it.opcode in dis.hasjrel or it.opcode in dis.hasjabs:
            todo.append((int(it.argval), depth + effect(it, jump=True)))
    return found


def site(it: dis.Instruction, depth: int, behind: int) -> Site | None:
    """What the C code has to say about an instruction, None if it does not call."""
    arg = it.arg or 0
    iterated = 1 if sys.version_info < (3, 15) else 2
    mapping = 1 if sys.version_info >= (3, 14) else arg & 1
    if it.opname == "CALL" and sys.version_info < (3, 12):
        depth += arg
    if it.opname == "FOR_ITER":
        return it.offset, behind, arg, depth, depth - iterated, depth, -1, FOR
    if it.opname == "SEND":
        return it.offset, behind, arg, depth, depth - iterated - 1, depth - 1, -1, SEND
    if it.opname == "WITH_EXCEPT_START":
        below = 4 if sys.version_info < (3, 14) else 5
        return it.offset, behind, arg, depth, depth - below, depth, -1, EXIT
    taken = {
        "CALL": arg + 2,
        "PRECALL": arg + 2,
        "CALL_KW": arg + 3,
        "CALL_FUNCTION_EX": 3 + mapping,
    }
    if it.opname not in taken:
        return None
    base = depth - taken[it.opname]
    unpacked = depth - 1 - mapping if it.opname == "CALL_FUNCTION_EX" else -1
    return it.offset, behind, 0, depth, base, base, unpacked, CALL


def sites(code: CodeType) -> list[Site]:
    """Of those instructions that can be reached."""
    found = depths(code)
    instructions = list(dis.get_instructions(code))
    ends = [it.offset for it in instructions[1:]] + [len(code.co_code)]
    rows = []
    for index, it in enumerate(instructions):
        if it.offset in found:
            at = index + (it.opname == "PRECALL")  # the call behind it
            while it.opname == "PRECALL" and instructions[at].opname != "CALL":
                at += 1
            rows.append(site(it, found[it.offset], ends[at]))
    return [row for row in rows if row is not None]


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """The code and those in it, without asynchronous generators: nobody asks for their frames."""
    if not code.co_flags & ASYNC_GENERATOR:
        yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from functions_of(constant)


@pytest.mark.parametrize(
    "name",
    ["argparse", "inspect", "tarfile", "typing", "traceback", "asyncio.base_events", "contextlib"],
)
def test_depths(probe: ModuleType, name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin)
    codes = list(functions_of(compile(path.read_bytes(), str(path), "exec")))
    assert codes
    for code in codes:
        assert probe.calls(code) == sites(code), code


def test_depths_of_long_code(probe: ModuleType) -> None:
    # Arguments and jumps that need prefixes, and calls inside handlers and with blocks.
    lines = ["def f(a):", " for x in a(a):", "  with a(x, k=a()) as y:", "   try:"]
    lines += [f"    v{i} = a({'x, ' * (i % 20)}a(*x, **y))" for i in range(300)]
    lines += ["   except a(x) as e:", "    a(e, [a(z) for z in x], *x)", "   finally:", "    a(y)"]
    code, *_ = functions_of(compile("\n".join(lines), "long", "exec").co_consts[0])
    expected = sites(code)
    assert len(expected) > 600
    assert probe.calls(code) == expected
