"""How the extension was compiled and linked: read from the installed file and its objects."""

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.constants import P_FLAGS
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from cpythonplus import _native
from tests.support import BUILD, SANITIZED, compile_c, is_built

DF_BIND_NOW = 0x8
DF_1_NOW = 0x1
IBT_AND_SHSTK = BTI_AND_PAC = 0b11

# By machine: what switches the marks on, the property that has them, and what it must say.
MARKS = {
    "x86_64": ("-fcf-protection=full", "GNU_PROPERTY_X86_FEATURE_1_AND", IBT_AND_SHSTK),
    "aarch64": ("-mbranch-protection=standard", "GNU_PROPERTY_AARCH64_FEATURE_1_AND", BTI_AND_PAC),
}
has_marks = pytest.mark.skipif(
    platform.machine() not in MARKS, reason="there are no marks for this processor"
)

pytestmark = pytest.mark.skipif(SANITIZED, reason="sanitizers are built without")


@pytest.fixture
def native() -> Iterator[ELFFile]:
    with Path(_native.__file__).open("rb") as file:
        yield ELFFile(file)


def segments(elf: ELFFile, kind: str) -> list[int]:
    """Return the flags of the segments of a kind."""
    return [each["p_flags"] for each in elf.iter_segments() if each["p_type"] == kind]


def dynamic(elf: ELFFile, tag: str) -> int:
    """Return a number of the dynamic section; 0 where it has none."""
    section = elf.get_section_by_name(".dynamic")
    assert isinstance(section, DynamicSection)
    return next((each["d_val"] for each in section.iter_tags(tag)), 0)


def imported(elf: ELFFile) -> set[str]:
    """Return the names that other libraries have to give."""
    section = elf.get_section_by_name(".dynsym")
    assert isinstance(section, SymbolTableSection)
    return {each.name for each in section.iter_symbols() if each["st_shndx"] == "SHN_UNDEF"}


def marks(path: Path, name: str) -> int:
    """Return what a file says of the processor's protections that it bears."""
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".note.gnu.property")
        if not isinstance(section, NoteSection):
            return 0
        properties = [each for note in section.iter_notes() for each in note["n_desc"]]
        return next((each["pr_data"] for each in properties if each["pr_type"] == name), 0)


def test_tables_of_addresses_are_read_only(native: ELFFile) -> None:
    assert segments(native, "PT_GNU_RELRO")
    assert dynamic(native, "DT_FLAGS") & DF_BIND_NOW
    assert dynamic(native, "DT_FLAGS_1") & DF_1_NOW


def test_stacks_are_not_executable(native: ELFFile) -> None:
    (flags,) = segments(native, "PT_GNU_STACK")
    assert not flags & P_FLAGS.PF_X


def test_stacks_are_protected_and_calls_fortified(native: ELFFile) -> None:
    names = imported(native)
    assert "__stack_chk_fail" in names
    if platform.libc_ver()[0] == "glibc":
        assert {"__snprintf_chk", "__fprintf_chk"} <= names


@has_marks
@is_built
def test_every_object_bears_the_protections() -> None:
    """Those with assembly, too: one without takes the mark from the whole library."""
    _, name, expected = MARKS[platform.machine()]
    objects = [*Path(BUILD or "").glob("src/cpythonplus/_native*.p/*.o")]
    assert len(objects) > 50
    assert [path.name for path in objects if marks(path, name) & expected != expected] == []


@has_marks
def test_the_library_bears_what_the_start_files_allow(tmp_path: Path) -> None:
    """Where the C library's own files (crti.o) have no marks, no library has."""
    option, name, _ = MARKS[platform.machine()]
    source = tmp_path / "empty.c"
    source.write_text("int number;\n")
    empty = compile_c(tmp_path / "empty.so", [source], "-shared", "-fPIC", option)
    assert marks(Path(_native.__file__), name) == marks(empty, name)
