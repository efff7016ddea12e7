# Helpers of .ci/run and tools/ci_parts.sh. shellcheck shell=bash

reports=$PWD/build/reports
names=()
versions=()
failed=()

# step NAME COMMAND...: runs it, says how long it took, and remembers a failure.
step() {
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n==== %s\n' "$name"
    "$@" </dev/null || status=$?
    if [ "$status" -eq 0 ]; then
        echo "==== $name: done in $((SECONDS - start)) s"
    else
        echo "==== $name: FAILED with status $status after $((SECONDS - start)) s"
        failed+=("$name")
    fi
}

# When the run as a whole is ended. One that is cut off from outside says nothing at all.
deadline=${CI_DEADLINE_SECONDS:-5100}

# limited COMMAND...: ends it where it hangs, as even pytest's own watchdog cannot, or when the time of all is up.
limited() {
    local most=${CI_TEST_SECONDS:-2100} left=$((deadline - SECONDS))
    [ "$left" -ge "$most" ] || most=$left
    timeout --kill-after=10 "$((most > 1 ? most : 1))" "$@"
}

# run_tests NAME COMMAND...: runs tests that write their report into $reports/NAME.xml, which is counted at the end.
# A process that crashed fails the run, also where pytest ran the rest of its tests in another one.
run_tests() {
    local name=$1
    shift
    names+=("$reports/$name.xml")
    step "$name" survived "$@"
}

survived() {
    local log status=0
    log=$(mktemp)
    "$@" 2>&1 | tee "$log" || status=$?
    if grep -qE '^[.sRFEx]*Fatal Python error: (Segmentation fault|Aborted|Bus error|Illegal instruction)' "$log"; then
        echo "==== a test crashed its process, see above"
        [ "$status" -ne 0 ] || status=1
    fi
    rm -f "$log"
    return "$status"
}

# 'X.Y.Z' of an interpreter, with 't' for a free-threaded one; nothing when it does not run.
version_of() {
    "$1" -I -c 'import platform, sys; print(platform.python_version() + sys.abiflags)' 2>/dev/null </dev/null || true
}

# 'VERSION PATH' for each CPython 3.11 to 3.15 on this machine: the newest of each minor version that
# can make environments, from pyenv first (whatever is active there), then from PATH.
local_pythons() {
    local python version minor seen=' '
    {
        for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-5]*/bin/python3; do
            version=$(version_of "$python")
            [ -z "$version" ] || echo "$version $python"
        done | sort -Vr
        for minor in 3.15 3.14 3.13 3.12 3.11; do
            type -ap "python$minor" || true
        done | while read -r python; do
            version=$(version_of "$python")
            [ -z "$version" ] || echo "$version $python"
        done
    } | while read -r version python; do
        minor=$(cut -d. -f1,2 <<<"$version")
        case $seen in *" $minor "*) continue ;; esac
        "$python" -I -c 'import ensurepip, venv' 2>/dev/null </dev/null || continue
        seen+="$minor "
        echo "$version $python"
    done
}

# since_base [ARGUMENT]... -- PATH...: what `git diff --name-only` says of the files there, since $CI_BASE, by default
# since the last commit that is six hours older than HEAD: a day of work or less.
since_base() {
    local base=${CI_BASE-}
    [ -n "$base" ] || base=$(git rev-list -1 --before="@$(($(git log -1 --format=%ct) - 21600))" HEAD)
    [ -z "$base" ] || git diff --name-only "$base" HEAD "$@"
}

# The rooms whose C has changed, and not only moved.
changed_rooms() {
    since_base -M90% --diff-filter=AM -- 'src/cpythonplus/*.[ch]' 'tests/*.[ch]' |
        sed -E 's#^src/cpythonplus/_?([a-z]+)/.*#\1#; s#^tests/([a-z]+)/.*#\1#' |
        { grep -E '^[a-z]+$' || true; } | sort -u
}

# has_changed FOLDER
has_changed() {
    [ -n "$(since_base -- "$1")" ]
}
