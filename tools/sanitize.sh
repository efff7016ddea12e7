#!/usr/bin/env bash
# Runs the project's tests under a sanitizer of gcc; called by make inside an environment.
#
#   sanitize.sh address [PYTEST_ARG...]   the rooms' tests against an ASan + UBSan build of the wheel
#   sanitize.sh thread                    the C test programs, built with TSan
#   sanitize.sh programs                  only builds those
#   sanitize.sh free_threaded PYTHON [PYTEST_ARG...]  tests/threads and tests/gil, extension and PYTHON built with TSan
#
# The thread sanitizer takes the extension only where the interpreter itself is built with it (tools/free_threaded.sh
# --tsan): else it would see none of the interpreter's locking and report every hand-over as a race. Such an interpreter
# stands in for the environment's own while the tests run.
set -euo pipefail

kind=$1
shift

address() {
    local runtime
    runtime=$(gcc -print-file-name=libasan.so)
    [ -e "$runtime" ] || { echo "sanitize: gcc's libasan.so is not installed" >&2; exit 1; }
    # Command line, benchmarks, documentation and the servers' Python call no C that the tests of their
    # rooms' C do not; the linter, the walk through the lock's model and the layering call none.
    # The interpreter keeps memory until the end on purpose, so leaks are not looked for here.
    # PYTHONMALLOC: its own allocator would hide overruns of small objects.
    # What takes one minute takes three here, and the watchdog must not end it beside other load.
    LD_PRELOAD=$runtime \
    ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1 \
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    PYTHONMALLOC=malloc \
    CPYTHONPLUS_SANITIZER=address \
        python -m pytest -o faulthandler_timeout=1800 -m 'not slow' --ignore tests/benchmarks --ignore tests/cli \
        --ignore tests/docs --ignore-glob 'tests/prefork/test_[!ehp]*' \
        --ignore tests/threads/test_model_lock.py --ignore tests/test_layering.py "$@"
}

# gcc's TSan needs a memory layout that address space randomisation may refuse it.
tsan_wrapper() {
    local probe=$1/probe
    echo 'int main(void) { return 0; }' | gcc -x c -fsanitize=thread -o "$probe" -
    if "$probe" 2>/dev/null; then
        echo env
    elif setarch -R "$probe" 2>/dev/null; then
        echo setarch -R
    else
        return 1
    fi
}

programs() {
    local folder=$CPYTHONPLUS_BUILD_DIR-tsan
    local log=$folder.log
    mkdir -p "$folder"
    meson setup --reconfigure "$folder" -Dtest_hooks=true -Dbuildtype=debugoptimized \
        -Db_ndebug=false -Db_sanitize=thread -Db_lundef=false >"$log" 2>&1 &&
        meson compile -C "$folder" >>"$log" 2>&1 ||
        { cat "$log" >&2; exit 1; }
}

thread() {
    local folder=$CPYTHONPLUS_BUILD_DIR-tsan wrapper
    mkdir -p "$folder"
    if ! wrapper=$(tsan_wrapper "$folder"); then
        echo 'sanitize: the thread sanitizer cannot run on this kernel: left out' >&2
        return 0
    fi
    programs
    # shellcheck disable=SC2086 # the wrapper is a command with options
    CPYTHONPLUS_BUILD_DIR=$folder TSAN_OPTIONS=halt_on_error=1 CPYTHONPLUS_SANITIZER=thread \
        $wrapper python -m pytest tests/test_c_programs.py
}

# The interpreter's own races are those that CPython's lists and tools/tsan_suppressions.txt name, and those without a
# frame of ours. The walk through the lock's model calls no C.
free_threaded() {
    local lists folder=$CPYTHONPLUS_BUILD_DIR/tsan-reports wrapper status=0 python=$1 real
    shift
    real=$(readlink -f "$VIRTUAL_ENV/bin/python")
    # shellcheck disable=SC2064 # the values of now
    trap "ln -sf '$real' '$VIRTUAL_ENV/bin/${real##*/}'" EXIT
    ln -sf "$(readlink -f "$(command -v "$python")")" "$VIRTUAL_ENV/bin/${real##*/}"
    lists=$("$python" -I -c 'import sysconfig; print(sysconfig.get_path("stdlib") + "/tsan")')
    rm -rf "$folder"
    mkdir -p "$folder"
    wrapper=$(tsan_wrapper "$folder") || { echo 'sanitize: the thread sanitizer cannot run on this kernel' >&2; exit 1; }
    cat "$lists"/suppressions*.txt tools/tsan_suppressions.txt >"$folder/suppressions"
    # shellcheck disable=SC2086 # the wrapper is a command with options
    TSAN_OPTIONS="suppressions=$folder/suppressions log_path=$folder/report exitcode=0 handle_segv=0 die_after_fork=0" \
    CPYTHONPLUS_SANITIZER=thread \
        $wrapper python -m pytest -o faulthandler_timeout=1800 -m 'not slow' tests/threads tests/gil \
        --ignore tests/threads/test_model_lock.py "$@" || status=$?
    # A report is ours if one of the two accesses is: the first frame below its line.
    cat "$folder"/report.* 2>/dev/null | awk '
        /^WARNING: ThreadSanitizer/ { all++; counted = 0 }
        / of size [0-9]+ at / { access = 1; next }
        access && /#0 / { access = 0; if (!counted && /cpythonplus|_native\.cpython/) { ours++; counted = 1 } }
        END { printf "sanitize: %d reports of ThreadSanitizer, %d of them in the C of this package\n", all, ours; exit ours > 0 }
    ' || status=1
    return "$status"
}

"$kind" "$@"
