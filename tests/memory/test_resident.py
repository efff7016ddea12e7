"""resident(): the parts add up, heaps of known content are told as such, and the remedies work."""

import json
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import _native, memory
from cpythonplus.memory._resident import smaps
from cpythonplus.memory._resident.model import Resident
from tests.memory.rebuilding import rebuilt
from tests.support import PYMALLOC, SANITIZED, child_environment, compile_c, run_child

MIB = 1 << 20
Heaps = dict[str, Any]
# What each program below begins with; show() leaves what the test looks at.
HEAD = """
import ctypes, gc, json, mmap, os, sys, tempfile, threading
from cpythonplus import memory

MIB = 1 << 20
shown = {}


def kernel_bytes():
    with open("/proc/self/smaps_rollup") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("Rss:"))


def show(name):
    found = memory.resident()
    kernel = kernel_bytes()
    shown[name] = {"found": found.as_json(), "kernel": kernel, "text": found.text(20)}
    return found


"""
TAIL = """
print(json.dumps(shown))
"""
HEAPS = """
fresh = show("fresh")

ctypes.CDLL(None).mallopt(-3, MIB)  # M_MMAP_THRESHOLD, which grows by itself
# Mappings: private and shared ones, large blocks side by side.
mappings = [mmap.mmap(-1, 5 * MIB, flags=mmap.MAP_PRIVATE), mmap.mmap(-1, 7 * MIB)]
for each in mappings:
    each[:] = b"x" * len(each)
arrays = [bytearray(b"x" * 3 * MIB) for _ in range(4)]
show("mappings")
del mappings, each, arrays

# Of pymalloc itself, at the same time.
with tempfile.TemporaryFile() as file:
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    sys._debugmallocstats()
    os.dup2(before, 2)
    file.seek(0)
    shown["stats"] = file.read().decode()
show("now")


class Session:
    def __init__(self, number):
        self.number = number


sessions = []


def burst(count):
    everything = []
    for number in range(count):
        everything.append(Session(number + 10**6))
        if number % 20_000 == 0:
            sessions.append(everything[-1])


burst(220_000)
show("survivors")
sessions.clear()
gc.collect()

# The remedy: what lives long is there before.
sessions = [Session(10**6) for _ in range(11)]
burst(200)
del sessions[11:]
everything = [Session(number + 10**6) for number in range(220_000)]
del everything
show("remedied")

# The classic: the highest of the blocks are freed first, and stay in the thread's cache.
# Not always: then the C library has given them back, and they are made anew.  In a function: a
# module's dict may grow at any new name, and then it lies above them.  Of many sizes: a thread's
# cache holds 7 of each, and whatever runs meanwhile, the doctor too, may take those of one size.
def classics():
    for _ in range(20):
        strings = [bytes(800 + number % 2 * 160) for number in range(20 * MIB // 944)]
        strings.sort(key=id)
        full = kernel_bytes()
        del strings
        if full - kernel_bytes() < 5 * MIB:
            break


classics()
classic = show("classic")
shown["returnable"] = classic.returnable_bytes
before = kernel_bytes()
ctypes.CDLL(None).malloc_trim(0)
shown["returned"] = before - kernel_bytes()

# Blocks that lie above it: C code's, and lists', of which the first may fit in somewhere below.
blocks = [bytearray(3000) for _ in range(3 * MIB // 3000)]
tables = [[None] * 5000 for _ in range(20)]
del blocks
show("table")

# Heaps of threads, and their stacks.
ready, end = threading.Barrier(4), threading.Event()


def work():
    mine = [bytes(2000) for _ in range(2 * MIB // 2033)]
    kept = mine[::50]
    del mine
    ready.wait()
    end.wait()


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
ready.wait()
show("threads")
end.set()
for thread in threads:
    thread.join()

"""


@pytest.fixture(scope="module")
def heaps() -> Heaps:
    if SANITIZED:
        pytest.skip("the sanitizer's allocator takes the place of the C library's")
    found: Heaps = json.loads(run_child(HEAD + HEAPS + TAIL).out)
    return found


def resident(heaps: Heaps, name: str) -> Resident:
    return rebuilt(Resident, heaps[name]["found"])


STATES = ["fresh", "survivors", "remedied", "classic", "table", "threads", "mappings"]


@pytest.mark.needs_gil
@pytest.mark.parametrize("name", STATES)
def test_the_parts_add_up(heaps: Heaps, name: str) -> None:
    found = resident(heaps, name)
    assert sum(part.resident_bytes for part in found.parts) == found.rss_bytes
    # Asked for a little later, and by other means: one arena may have come or gone between.
    assert abs(found.rss_bytes - heaps[name]["kernel"]) < MIB + 0.03 * found.rss_bytes
    assert not found.notes
    # What nothing is known of is small, where no mapping was made.
    if name != "mappings":
        assert found.part("mappings") < 0.03 * found.rss_bytes


@pytest.mark.needs_gil
def test_arenas_are_what_pymalloc_says(heaps: Heaps) -> None:
    arenas = resident(heaps, "now").arenas
    stats = {
        line.split("=")[0].strip(): line.split("=")[-1].strip().replace(",", "")
        for line in heaps["stats"].splitlines()
        if "=" in line
    }
    assert sum(arenas.fullness) == arenas.count
    assert arenas.count - int(stats["# arenas allocated current"]) in (0, 1)  # one more by now
    allocated = int(stats["# bytes in allocated blocks"])
    assert arenas.live_bytes == pytest.approx(allocated, rel=0.02)


@pytest.mark.needs_gil
def test_survivors_are_named(heaps: Heaps) -> None:
    found = resident(heaps, "survivors")
    assert found.arenas.free_in_them_bytes > 5 * MIB
    pins = {pin.type: pin for pin in found.pins}
    session = pins["__main__.Session"]
    assert session.objects >= 8  # some lie in arenas that are not mostly free
    assert "__main__.sessions" in session.holder
    assert session.held_bytes > MIB
    in_arenas = sum(pin.held_bytes for pin in found.pins if pin.place == "arenas")
    assert in_arenas == pytest.approx(found.arenas.free_in_them_bytes, rel=0.1)
    first = found.verdict[0]
    assert first.kind == "arenas"
    said = " ".join(heaps["survivors"]["text"].split())
    assert "__main__.Session, held by" in said
    assert "__main__.sessions" in said
    assert "in_subprocess" in first.remedy


OWN = """
import json, sys, types
from cpythonplus import _native, memory


class Session:
    def __init__(self, number):
        self.number = number


def burst():
    # Leaves arenas behind that are nearly free, and what comes next lies in them.
    everything = [Session(number + 10**6) for number in range(220_000)]
    return everything[::20_000]


sessions = burst()
from cpythonplus._doctor.agent.answering import answer

answers = [answer(name, "") for name in ("resident", "census", "caches", "threads", "resident")]
pins = [json.loads(text)["pins"] for _failed, text in (answers[0], answers[-1])]

# A module that is said to be the doctor's; then every second text is the program's, too.
# The texts are what is left in their arenas: new ones would fill up fuller arenas first.
made_up = types.ModuleType("made_up")
made_up.texts = [f"text {number} of the module" for number in range(600_000)][::6000]
own = [_native.memory_arenas([], 64, {"made_up": vars(made_up)})[8][0]]
shared = made_up.texts[::2]
own.append(_native.memory_arenas([], 64, {"made_up": vars(made_up)})[8][0])
print(json.dumps({"pins": pins, "own": own}))
"""


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="objects do not come from pymalloc there")
def test_the_doctor_does_not_blame_itself() -> None:
    found = json.loads(run_child(OWN).out)
    looks = [[pin for pin in pins if pin["place"] == "arenas"] for pins in found["pins"]]
    for of_arenas in looks:
        kinds = [pin["type"] for pin in of_arenas]
        assert kinds.count("the doctor's own") == 1
        assert "__main__.Session" in kinds
    # What the first one has loaded is most of what lies there.
    largest = looks[-1][0]
    assert largest["type"] == "the doctor's own"
    # One holder stands for all of a type, and names are shared with the modules of others.
    doctors = [
        pin
        for pin in looks[-1]
        if pin["type"] != "str" and pin["holder"].startswith("cpythonplus.memory")
    ]
    assert sum(pin["objects"] for pin in doctors) < largest["objects"] / 10
    alone, with_others = found["own"]
    assert alone > 90
    assert with_others == pytest.approx(alone / 2, rel=0.1)


@pytest.mark.needs_gil
def test_what_lived_before_pins_nothing(heaps: Heaps) -> None:
    before, after = resident(heaps, "survivors"), resident(heaps, "remedied")
    assert after.arenas.free_in_them_bytes < before.arenas.free_in_them_bytes / 2


@pytest.mark.needs_gil
def test_the_classic(heaps: Heaps) -> None:
    found = resident(heaps, "classic")
    assert found.part("c_heap_free") + found.part("c_heap_top") > 18 * MIB
    first = found.verdict[0]
    assert first.kind == "c_heap"
    assert "trim()" in first.remedy
    pin = next(pin for pin in found.pins if pin.place == "c_heap_top")
    assert pin.type == "free, in a thread's cache"
    # What lies above the largest free piece is blamed for it.
    assert sum(p.held_bytes for p in found.pins if p.place == "c_heap_top") > 10 * MIB
    assert first.frees_bytes == heaps["returnable"]
    assert heaps["returned"] == pytest.approx(heaps["returnable"], rel=0.1)


@pytest.mark.needs_gil
def test_the_owner_of_the_last_block(heaps: Heaps) -> None:
    found = resident(heaps, "table")
    pins = [pin for pin in found.pins if pin.place == "c_heap_top"]
    lists = [pin for pin in pins if pin.type == "list"]
    assert lists, heaps["table"]["text"]
    assert lists[0].size_bytes >= 40_000


@pytest.mark.needs_gil
def test_heaps_and_stacks_of_threads(heaps: Heaps) -> None:
    found = resident(heaps, "threads")
    assert found.part("thread_heaps_free") > 4 * MIB
    assert found.verdict[0].kind == "thread_heaps"
    assert next(part.count for part in found.parts if part.name == "stacks") == 4


@pytest.mark.needs_gil
def test_mappings(heaps: Heaps) -> None:
    found = resident(heaps, "mappings")
    assert found.part("large_blocks") == pytest.approx(12 * MIB, rel=0.05)
    assert found.part("mappings") == pytest.approx(5 * MIB, rel=0.1)
    assert found.part("shared") == pytest.approx(7 * MIB, rel=0.05)
    # The kernel cannot take it away, as it can pages of files.
    shared = next(advice for advice in found.verdict if advice.kind == "shared")
    assert "last process" in shared.remedy


def test_a_fresh_process_has_nothing_to_do(heaps: Heaps) -> None:
    found = resident(heaps, "fresh")
    assert not any(advice.frees_bytes for advice in found.verdict)
    assert any("Nothing to do" in advice.remedy for advice in found.verdict)


@pytest.mark.needs_gil
def test_text(heaps: Heaps) -> None:
    text = heaps["survivors"]["text"]
    assert text == resident(heaps, "survivors").text(20)
    for words in ("What it consists of:", "free in Python's arenas", "__main__.Session", "  -> "):
        assert words in text
    assert "\n  and " in resident(heaps, "survivors").text(1)


# ---- other allocators ---------------------------------------------------------------------------


@pytest.mark.needs_gil
@pytest.mark.skipif(
    SANITIZED, reason="the sanitizer's allocator takes the place of the C library's"
)
def test_without_pymalloc() -> None:
    child = run_child(HEAD + 'show("heap")' + TAIL, env={"PYTHONMALLOC": "malloc"})
    found = resident(json.loads(child.out), "heap")
    assert found.arenas.unknown
    assert any("arenas" in note for note in found.notes)
    assert found.part("live_objects") == 0
    assert found.part("c_heap_used") > 3 * MIB


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="objects do not come from pymalloc there")
def test_pymallocs_list_of_arenas_moves_when_it_grows() -> None:
    """It has 16 entries at first, then 32, 64: looks before and after."""
    program = """
from cpythonplus import _native

kept, counts = [], []
for _ in range(70):
    found = _native.memory_arenas([], 0)
    assert not isinstance(found, str), (found, counts)
    counts.append(len(found[2]))
    kept.append([(number,) for number in range(16_000)])
assert counts[-1] > 64, counts
assert counts == sorted(counts), counts
"""
    run_child(program, env=child_environment(PYMALLOC))


@pytest.mark.skipif(
    SANITIZED, reason="the sanitizer's allocator takes the place of the C library's"
)
def test_a_heap_that_grows_meanwhile_is_one() -> None:
    """Another thread allocates between the kernel's list of mappings and the look at the heaps."""
    program = """
import ctypes, threading
from cpythonplus.memory._resident import smaps, splitting

MIB = 1 << 20
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
ledgers = []


def grow():
    for _ in range(160):
        ctypes.memset(malloc(MIB // 16), 1, MIB // 16)


def work():
    grow()
    ledgers.append(splitting.Ledger(list(smaps.parse(smaps.read()))))
    grow()


thread = threading.Thread(target=work)
thread.start()
thread.join()
splitting.c_heaps(ledgers[0])
print(ledgers[0].parts["thread_heaps_used"] // MIB)
"""
    assert int(run_child(program).out) >= 9


@pytest.mark.needs_gil
def test_with_debug_hooks() -> None:
    child = run_child(HEAD + 'show("heap")' + TAIL, env={"PYTHONMALLOC": "debug"})
    found = resident(json.loads(child.out), "heap")
    assert found.arenas.count > 0
    assert found.part("live_objects") == pytest.approx(found.arenas.live_bytes, rel=0.02)


FAKE = """
#include <stddef.h>
#include <string.h>
void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes);
void *malloc(size_t bytes)
{
    return __libc_malloc(bytes);
}
/* A program that is not position-independent may have an entry of its own for malloc. */
void *calloc(size_t count, size_t bytes)
{
    return __libc_calloc(count, bytes);
}
int mallctl(const char *name, void *old, size_t *old_bytes, void *new_, size_t new_bytes)
{
    size_t number = strcmp(name, "stats.allocated") == 0 ? 3 << 20 : 5 << 20;
    if (strcmp(name, "epoch") != 0)
        memcpy(old, &number, sizeof number);
    return 0;
}
"""


@pytest.mark.any_version
@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's then, whatever else is loaded")
def test_another_allocator_is_asked(tmp_path: Path) -> None:
    source = tmp_path / "fake.c"
    source.write_text(FAKE)
    library = compile_c(tmp_path / "libfake.so", [source], "-shared", "-fPIC")
    program = "kept = mmap.mmap(-1, 8 * MIB, flags=mmap.MAP_PRIVATE)\nkept[:] = b'x' * 8 * MIB\n"
    child = run_child(HEAD + program + 'show("heap")' + TAIL, env={"LD_PRELOAD": str(library)})
    found = resident(json.loads(child.out), "heap")
    assert found.part("other_allocator") == 3 * MIB
    assert found.part("other_allocator_free") == 2 * MIB


@pytest.mark.any_version
@pytest.mark.parametrize("early", [True, False], ids=["preloaded", "imported"])
@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's then, whatever else is loaded")
def test_an_allocator_that_malloc_is_not(tmp_path: Path, early: bool) -> None:
    """A library may bring a jemalloc of its own, with all its names, and leave malloc alone."""
    source = tmp_path / "own.c"
    source.write_text("#include <stdlib.h>\nint mallctl(void) { abort(); }\n")
    library = compile_c(tmp_path / "libown.so", [source], "-shared", "-fPIC")
    child = run_child(
        f"""
        import ctypes
        from cpythonplus import _native, memory
        library = ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)
        assert ctypes.CDLL(None).mallctl  # is found by who asks the dynamic linker
        assert _native.memory_foreign_malloc() is None
        allocator = _native.memory_trim_c_heap()[0]
        assert allocator in ("glibc", "other"), allocator
        """,
        env={"LD_PRELOAD": str(library)} if early else None,
    )
    assert child.err == ""


# ---- reading ------------------------------------------------------------------------------------

LINES = """\
55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
Rss:                 100 kB
VmFlags: rd wr mr mw me ac
7f0000000000-7f0000001000 ---p 00000000 00:00 0
Rss:                   0 kB
7f0000001000-7f0000801000 rw-p 00000000 00:00 0
Rss:                  12 kB
7f1000000000-7f1000010000 rw-p 00001000 08:01 77                         /usr/lib/lib a.so
Rss:                   8 kB
"""


@pytest.mark.any_version
def test_smaps() -> None:
    heap, _guard, stack, data = smaps.parse(LINES)
    assert (heap.path, heap.resident_bytes, heap.is_anonymous) == ("[heap]", 102_400, False)
    assert (stack.guarded, stack.is_anonymous) == (True, True)
    assert (data.path, data.left_bytes) == ("/usr/lib/lib a.so", 8192)
    assert not data.guarded


def test_without_pins() -> None:
    found = memory.resident(pins=False)
    assert found.pins == ()
    assert found == rebuilt(Resident, json.loads(json.dumps(found.as_json())))
    assert str(found) == found.text()


@pytest.mark.any_version
def test_odd_heaps_are_no_heaps() -> None:
    """Whatever lies at an address: an error's number, or a heap, and no crash."""
    child = run_child(
        """
        import ctypes, mmap, random, struct
        from cpythonplus import _native

        size = 128 << 20
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
        start = -(-ctypes.addressof(ctypes.c_char.from_buffer(memory)) // (64 << 20)) * (64 << 20)
        offset = start - ctypes.addressof(ctypes.c_char.from_buffer(memory))
        chance = random.Random(7)
        for _ in range(300):
            odd = [0, 17, 33, 4096, start, start + 32, 1 << 20, chance.getrandbits(64)]
            words = chance.choices(odd, k=600)
            words[:4] = [start + 32, 0, 1 << 20, 1 << 20]
            memory[offset:offset + 4800] = struct.pack("<600Q", *words)
            for is_main in (True, False):
                _native.memory_c_heap(start, start + (1 << 20), is_main, True)
            _native.memory_large_blocks(start, start + (1 << 20), 1 << 30, 10)
        assert type(_native.memory_c_heap(4096, 8192, True, True)) is int
        assert type(_native.memory_c_heap(2**64 - 8192, 2**64 - 4096, True, False)) is int
        assert _native.memory_read_words(8, 4) == ()
        assert _native.memory_resident_bytes(4096, 8192) == 0
        print("alive")
        """
    )
    assert child.out == "alive\n"


@pytest.mark.needs_gil
def test_arguments() -> None:
    with pytest.raises(ValueError, match="length"):
        _native.memory_c_heap(8192, 4096, True, True)
    if not SANITIZED:  # there is no arena then, and nothing is looked at
        with pytest.raises(ValueError, match="length"):
            _native.memory_arenas([(2, 1)], 1)
    with pytest.raises(ValueError, match="words"):
        _native.memory_read_words(0, 5000)
