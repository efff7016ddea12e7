"""Where CPython's headers put what the package reads: offsets of fields, builds side by side.

    python -m tools.header_offsets INCLUDE [INCLUDE ...]  all of one minor version
    python -m tools.header_offsets --paths                whose history to read, fact by fact

INCLUDE is the folder that has a build's Python.h (.../include/python3.13). A field that is marked
lies elsewhere in another patch release: what is compiled with one release runs with all of them.
Exit status 1 when there is one.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NEWEST = 15
ALWAYS = (11, NEWEST)
FRAME = "struct _PyInterpreterFrame"
# Versions that have it, the structure, its fields.
FIELDS = [
    (
        ALWAYS,
        "PyThreadState",
        "dict thread_id native_thread_id context context_ver tracing exc_info",
    ),
    (ALWAYS, "PyThreadState", "c_tracefunc c_profilefunc c_traceobj c_profileobj"),
    (ALWAYS, "PyThreadState", "datastack_chunk datastack_top datastack_limit"),
    (
        (11, 11),
        "PyThreadState",
        "recursion_limit recursion_remaining tracing_what trash_delete_nesting",
    ),
    ((12, NEWEST), "PyThreadState", "py_recursion_limit py_recursion_remaining what_event"),
    ((11, 12), "PyThreadState", "cframe root_cframe"),
    ((12, 12), "PyThreadState", "trash.delete_nesting"),
    ((12, 13), "PyThreadState", "c_recursion_remaining"),
    ((13, NEWEST), "PyThreadState", "current_frame eval_breaker"),
    ((14, NEWEST), "PyThreadState", "current_executor delete_later"),
    ((15, NEWEST), "PyThreadState", "base_frame last_profiled_frame"),
    ((14, NEWEST), "_PyThreadStateImpl", "c_stack_top c_stack_soft_limit c_stack_hard_limit"),
    ((12, 12), "PyInterpreterState", "monitoring_version"),
    (ALWAYS, "_PyStackChunk", "previous size top data"),
    ((11, 12), "_PyCFrame", "current_frame previous"),
    (ALWAYS, FRAME, "f_globals f_builtins f_locals frame_obj previous owner localsplus"),
    ((11, 11), FRAME, "f_func f_code prev_instr stacktop is_entry"),
    ((12, 12), FRAME, "f_funcobj f_code prev_instr stacktop return_offset"),
    ((13, 13), FRAME, "f_funcobj f_executable instr_ptr stacktop return_offset"),
    ((14, NEWEST), FRAME, "f_funcobj f_executable instr_ptr stackpointer return_offset"),
    (ALWAYS, "PyFrameObject", "f_frame f_trace_opcodes"),
    (ALWAYS, "PyGenObject", "gi_frame_state gi_exc_state gi_iframe"),
    (
        ALWAYS,
        "PyCodeObject",
        "co_nlocalsplus co_consts co_exceptiontable co_linetable co_code_adaptive",
    ),
    (
        (12, NEWEST),
        "PyCodeObject",
        "_co_cached _co_monitoring _co_instrumentation_version _co_firsttraceable",
    ),
    (ALWAYS, "PyDictObject", "ma_used ma_keys ma_values"),
    ((11, 11), "PyDictObject", "ma_version_tag"),
    (ALWAYS, "PyHeapTypeObject", "ht_name ht_qualname ht_slots ht_cached_keys"),
    (ALWAYS, "PyASCIIObject", "length state"),
    (ALWAYS, "PyListObject", "allocated"),
    (ALWAYS, "PySetObject", "mask table smalltable"),
    ((11, 11), "PyVarObject", "ob_size"),
    ((12, NEWEST), "PyLongObject", "long_value.lv_tag"),
    ((14, NEWEST), "PyObject", "ob_refcnt ob_flags"),
    ((11, 13), "struct _gc_runtime_state", "generations generation0 permanent_generation"),
    ((14, NEWEST), "struct _gc_runtime_state", "permanent_generation"),
]
COLLECTOR = [
    "Include/internal/pycore_gc.h",
    "Include/internal/pycore_interp_structs.h",
    "Python/gc.c",
    "Modules/gcmodule.c",
]
FRAMES = [
    f"Include/internal/pycore_{name}.h"
    for name in ("frame", "interpframe", "interpframe_structs", "stackref")
]
LOOP = ["Python/bytecodes.c", "Python/ceval.c", "Python/frame.c"]
STATE = ["Include/cpython/pystate.h", "Include/internal/pycore_tstate.h", "Python/pystate.c"]
MONITORING = [
    "Include/cpython/code.h",
    "Include/internal/pycore_instruments.h",
    "Python/instrumentation.c",
]
DICTS = ["Include/cpython/dictobject.h", "Include/internal/pycore_dict.h", "Objects/dictobject.c"]
SIZES = [
    f"Include/cpython/{name}.h"
    for name in ("longintrepr", "unicodeobject", "listobject", "setobject")
]
PYMALLOC = ["Include/internal/pycore_obmalloc.h", "Objects/obmalloc.c"]
PATHS = {
    "gc-header, gc-rings": COLLECTOR,
    "frames, operands": [*FRAMES, *LOOP],
    "frame-building": [
        *FRAMES,
        *LOOP,
        "Include/internal/pycore_genobject.h",
        "Objects/genobject.c",
    ],
    "itertools": ["Modules/itertoolsmodule.c"],
    "thread-state": STATE,
    "instrumentation, frame-tracing": [*MONITORING, "Python/legacy_tracing.c"],
    "dict-keys, inline-values, dict-version": [*DICTS, "Include/internal/pycore_object.h"],
    "object-sizes": SIZES,
    "pools, arenas": PYMALLOC,
    "immortal": ["Include/object.h", "Include/refcount.h", "Objects/unicodeobject.c"],
    "gil (by behaviour)": ["Python/ceval_gil.c", "Python/condvar.h", "Python/thread_pthread.h"],
}


def version_of(include: Path) -> tuple[int, int]:
    """Return the minor version and the patch release of a folder of headers."""
    text = (include / "patchlevel.h").read_text("utf-8")
    found = dict(re.findall(r"PY_(MINOR|MICRO)_VERSION\s+(\d+)", text))
    return int(found["MINOR"]), int(found["MICRO"])


def program(include: Path) -> str:
    """Return the source of a program that prints each field and its offset."""
    minor, _ = version_of(include)
    if minor > NEWEST:
        sys.exit(f"3.{minor}: raise NEWEST in tools/header_offsets.py, then correct what differs")
    names = ["frame", "genobject", "interpframe", "tstate", "gc", "interp"]
    here = [name for name in names if (include / "internal" / f"pycore_{name}.h").exists()]
    lines = ["#define Py_BUILD_CORE 1", "#include <Python.h>", "#include <stddef.h>"]
    lines += [f"#include <internal/pycore_{name}.h>" for name in here]
    lines += ["#include <stdio.h>", "int main(void) {"]
    for (since, until), type_name, fields in FIELDS:
        for field in fields.split() if since <= minor <= until else []:
            lines.append(f'printf("{type_name}.{field}=%zu\\n", offsetof({type_name}, {field}));')
    return "\n".join([*lines, "return 0; }", ""])


def offsets(include: Path) -> dict[str, int]:
    """Return the offset of each field in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        source, printer = Path(folder, "offsets.c"), Path(folder, "offsets")
        source.write_text(program(include), "utf-8")
        flags = [
            f"-I{include}",
            f"-I{include}/internal",
            f"-idirafter{include.parent}",
            "-w",
            "-O1",
        ]
        # The headers' inline functions call what only the interpreter has.
        linked = ["-Wl,--unresolved-symbols=ignore-all", "-o", str(printer)]
        subprocess.run(["cc", *flags, str(source), *linked], check=True)
        printed = subprocess.run([str(printer)], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split("=") for line in printed.splitlines())}


def main(arguments: list[str]) -> int:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("include", type=Path, nargs="*")
    options = parser.parse_args(arguments)
    if options.paths:
        for fact, paths in PATHS.items():
            print(f"{fact}:\n    {' '.join(paths)}")
        return 0
    tables = [offsets(include) for include in options.include]
    versions = ["3.{}.{}".format(*version_of(include)) for include in options.include]
    print(f"{'':46}" + "".join(f"{version:>9}" for version in versions))
    moved = False
    for name in tables[0] if tables else {}:
        values = [table[name] for table in tables]
        moved |= len(set(values)) > 1
        mark = "  moved" if len(set(values)) > 1 else ""
        print(f"{name:46}" + "".join(f"{value:9}" for value in values) + mark)
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
