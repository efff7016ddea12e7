# The parts of the checks, and which of them stand beside each other. shellcheck shell=bash
#
# `slots` has a line for each tenth run: its words are parts with their arguments behind colons. Ten runs on successive
# commits have had all of them; `make nightly` has all at once. A place is `here` for this machine, or one of the folders
# of tools/debian_folder.sh; a Python is a minor version here, and a command there.
slots=(
    "tests:here:3.12 lies:bookworm:python3.11 site_tests:sid:python3.13 cpython:here:3.11:1/2"
    "tests:sid:python3.15-dbg cpython:sid:python3.14:1/3"
    "aarch64 musl cpython:here:3.12:1/2"
    "free_threaded:trixie:3.13:threads:gil:memory:doctor:base lies:sid:python3.13 cpython:sid:python3.13:1/3"
    "newcomer:bookworm lies:here:3.12 cpython:sid:python3.14:2/3"
    "tests:sid:python3.14 lies:sid:python3.14 cpython:sid:python3.13:2/3"
    "sanitizers site try_docs cpython:here:3.11:2/2"
    "tests:sid:python3.14-dbg tests:here:3.13 cpython:here:3.12:2/2"
    "tests:sid:python3.14:PYTHON_JIT=1 tests:here:3.11 compat cpython_tasklets cpython:sid:python3.13:3/3"
    "newcomer:trixie lies:sid:python3.15 archives cycles cpython:sid:python3.14:3/3"
)

# What each run looks at: the interpreters that most people have. The last one is the newest.
people_have=("bookworm python3.11" "trixie python3.13" "sid python3.13" "sid python3.15")

# Rooms that look into the interpreter. The others use the public API, and one interpreter decides of them.
quick="-m 'not builds and not any_version and not slow' -k 'not stock'"
inside=$quick
for room in base interp gil threads tasklets compact heap memory doctor prefork; do inside+=" tests/$room"; done

# find_python PLACE PYTHON: how it is called there; fails, and says so, where it is not there.
find_python() {
    local python=$2
    [ "$1" != here ] || python=$(local_pythons | sed -n "s/^$2\.[^ ]* //p")
    [ -n "$python" ] || { echo "no CPython $2 on this machine: left out" >&2; return 1; }
    echo "$python"
}

# at PLACE NAME PYTEST_ARGS COMMAND...: runs it there, and brings its report to $reports/NAME.xml.
at() {
    local place=$1 name=$2 arguments=$3 status=0
    shift 3
    if [ "$place" = here ]; then
        limited "$@" PYTEST_ARGS="$arguments --junitxml=$reports/$name.xml"
        return
    fi
    limited tools/debian_folder.sh "$place" run "$@" PYTEST_ARGS="$arguments --junitxml=build/$name.xml" || status=$?
    tools/debian_folder.sh "$place" fetch "build/$name.xml" "$reports/$name.xml" || true
    return "$status"
}

# remember PLACE PYTHON: for the closing lines.
remember() {
    local version
    if [ "$1" = here ]; then version=$(version_of "$2"); else version=$(tools/debian_folder.sh "$1" version "$2"); fi
    versions+=("$version")
}

# tests PLACE PYTHON [NAME=VALUE]: what looks into the interpreter.
tests() {
    local place=$1 python name
    python=$(find_python "$place" "$2") || return 0
    remember "$place" "$python"
    name=$place-${2#python}${3:+-${3%%=*}}
    run_tests "$name" at "$place" "$name" "$inside" env "${@:3}" make test PYTHON="$python"
}

# free_threaded FOLDER VERSION [ROOM]...: the same without a GIL, of these rooms alone if any is named and not everything
# is tested, on an interpreter that is built there once.
free_threaded() {
    local folder=$1 python=python$2t inside=$inside
    step "$python" limited tools/debian_folder.sh "$folder" run tools/free_threaded.sh "$2"
    shift 2
    [ $# -eq 0 ] || [ -n "${everything-}" ] || inside="$quick ${*/#/tests/}"
    tests "$folder" "$python"
}

# all_tests PLACE PYTHON: the slow ones too, but those of the other distribution, `sites`, where it did not change. In
# sid they open the doctor's page in a browser and use servers: nothing that these need may be missing there.
all_tests() {
    local place=$1 python name needed=() arguments=
    python=$(find_python "$place" "$2") || return 0
    [ "$place" != sid ] || needed=(CPYTHONPLUS_NEED_SERVERS=1 CPYTHONPLUS_NEED_CHROMIUM=1 "${links[@]}")
    [ -n "${everything-}" ] || has_changed sites || arguments=--ignore=sites/tests
    remember "$place" "$python"
    name=$place-${2#python}-all
    run_tests "$name" at "$place" "$name" "$arguments" env "${needed[@]}" make test-all PYTHON="$python"
}

# Sites are linked where the kernel gives networks and tunnels of one's own.
links=()
if unshare --net true 2>/dev/null && [ -c /dev/net/tun ]; then links=(CPYTHONPLUS_NEED_SITES=1); fi

# site_tests PLACE PYTHON: the other distribution's, all of them.
site_tests() {
    local python name=sites-$1
    python=$(find_python "$1" "$2") || return 0
    run_tests "$name" at "$1" "$name" sites/tests env "${links[@]}" make test-all PYTHON="$python"
}

# lies PLACE PYTHON: each fact made false.
lies() {
    local python name=lies-$1-${2#python}
    python=$(find_python "$1" "$2") || return 0
    run_tests "$name" at "$1" "$name" '' make test-lies PYTHON="$python"
}

# newcomer FOLDER: as a new user has it, in an ordinary user's clone, below /tmp, in a path with a space.
newcomer() {
    run_tests "newcomer-$1" newcomers_tests "$1"
}
newcomers_tests() {
    local status=0
    limited tools/debian_folder.sh "$1" newcomer make test PYTEST_ARGS="--junitxml=build/newcomer.xml" || status=$?
    tools/debian_folder.sh "$1" fetch_clone build/newcomer.xml "$reports/newcomer-$1.xml" || true
    return "$status"
}

# cpython PLACE PYTHON K/N: a part of CPython's whole test suite, under `run`.
cpython() {
    local python command=()
    python=$(find_python "$1" "$2") || return 0
    [ "$1" = here ] || command=(tools/debian_folder.sh "$1" run)
    step "CPython's own tests, $1 $2, $3" limited "${command[@]}" \
        make cpython-tests PYTHON="$python" CPYTHON_ARGS="--whole --part $3"
}

# once NAME TARGET [NAME=VALUE]...: what needs one interpreter.
once() {
    step "$1" limited make "$2" PYTHON="$first_python" "${@:3}"
}
archives() { once 'make dist' dist; }
musl() { once 'make musl' musl; }
try_docs() { run_tests try-docs at here try-docs '' make try-docs PYTHON="$first_python"; }
site() { once 'make site' site; }
compat() { once "other people's tests" compat COMPAT=quick; }
cycles() { once "cycles in other people's tests" compat COMPAT=quick COMPAT_ARGS=--no-cycles; }
cpython_tasklets() { once "CPython's own tests with tasklets" cpython-tests-tasklets CPYTHON_TESTS=quick; }

# sanitizers [ROOM]...: of all rooms, the slow tests too, if none is named.
sanitizers() {
    local name=sanitizers${1:+-changed} arguments=${*/#/tests/}
    run_tests "$name" at here "$name" "${arguments:--m 'not builds and not any_version'}" make sanitize PYTHON="$first_python"
}

aarch64() {
    local unusable
    if ! unusable=$(tools/arm64.sh usable); then
        echo "$unusable: an emulated aarch64 is left out"
        return
    fi
    run_tests aarch64 in_arm64
}
in_arm64() {
    local status=0
    limited tools/arm64.sh short -n 2 --dist worksteal --junitxml=aarch64.xml || status=$?
    tools/arm64.sh fetch aarch64.xml "$reports/aarch64.xml" || true
    return "$status"
}

# Ten million random calls a version, which takes hours: with CI_LONG alone.
random_calls() {
    local each
    for each in 3.11 3.12 3.13; do once "random calls on $each" fuzz-calls PYTHON="$(find_python here "$each")"; done
    for each in 3.14 3.15; do
        step "random calls on $each" tools/debian_folder.sh sid run make fuzz-calls PYTHON="python$each"
    done
}

# run_slot SLOT: its parts, one after another.
run_slot() {
    local part
    echo "slot $1 of ${#slots[@]}: ${slots[$1]}"
    for part in ${slots[$1]}; do
        # shellcheck disable=SC2086 # words
        IFS=: eval 'set -- $part'
        "$@"
    done
}

# next_slot FILE: by the number of commits; where FILE has the slots of earlier runs, the first from there on that none
# of the last nine had.
next_slot() {
    local count=${#slots[@]} first each
    first=$(($(git rev-list --count HEAD) % count))
    for ((each = first; each < first + count; each++)); do
        tail -n $((count - 1)) "$1" 2>/dev/null | grep -qx "$((each % count))" || break
    done
    echo $((each % count))
}
