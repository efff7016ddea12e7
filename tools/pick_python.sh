#!/bin/sh
# Chooses the interpreter that the make targets use and prints its path.
#
#   pick_python.sh CACHE
#
# PYTHON in the environment overrides (a path or a command). Otherwise: the newest usable one of
# python3.15 ... python3.11, then python3, on PATH; every occurrence on PATH counts, since the first
# may be a shim for a version that is not active. Usable: it runs, is CPython >= 3.11, can make
# virtual environments and has the C headers. Where only the headers are missing everywhere, they
# are fetched by tools/fetch_headers.sh. The choice and what was skipped is told on stderr, one line
# each, and kept in the file CACHE until PATH or PYTHON change, so that it is told once.
set -eu

cache=$1
tools=$(dirname "$0")
key="PYTHON=${PYTHON-} PATH=$PATH"

say() { (IFS=' '; echo "python: $*" >&2); }

# Prints why `$1` cannot be used, or 'ok', or 'headers' when only Python.h is missing.
judge() {
    # -I: neither a PYTHONPATH nor the current folder may change what is asked.
    "$1" -I -c '
import sys
if sys.implementation.name != "cpython":
    sys.exit(print("is not CPython"))
if sys.version_info < (3, 11):
    sys.exit(print("is Python %d.%d, older than 3.11" % sys.version_info[:2]))
try:
    import ensurepip, venv
except ImportError:
    sys.exit(print("cannot make virtual environments (Debian: python%d.%d-venv)" % sys.version_info[:2]))
import os, sysconfig
found = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print("ok" if found else "headers")
' 2>/dev/null </dev/null || echo "does not run"
}

# Every executable of this name on PATH, in order.
on_path() {
    (
        IFS=:
        for folder in $PATH; do
            [ -x "$folder/$1" ] && [ ! -d "$folder/$1" ] && echo "$folder/$1"
        done
        true
    )
}

choose() {
    say "using $1 ($("$1" -c 'import platform; print(platform.python_version())'))"
    mkdir -p "$(dirname "$cache")"
    printf '%s\n%s\n' "$1" "$key" >"$cache"
    echo "$1"
    exit 0
}

if [ -f "$cache" ] && [ "$(sed 1d "$cache")" = "$key" ]; then
    kept=$(sed -n 1p "$cache")
    if [ -x "$kept" ] && "$kept" -c '' 2>/dev/null; then
        echo "$kept"
        exit 0
    fi
fi

if [ -n "${PYTHON-}" ]; then
    candidates=$(command -v "$PYTHON") || { say "PYTHON=$PYTHON: there is no such command"; exit 2; }
else
    candidates=$(for name in python3.15 python3.14 python3.13 python3.12 python3.11 python3; do
        on_path "$name"
    done)
fi

# One interpreter may stand on PATH under several names (/bin and /usr/bin, python3 and python3.11).
seen=:
without_headers=
IFS='
'
for candidate in $candidates; do
    real=$(readlink -f "$candidate")
    case $real in
    # A shim is one file for all its versions: only the name that it is called by tells them apart.
    */shims/*) real=$candidate ;;
    esac
    case $seen in *":$real:"*) continue ;; esac
    seen=$seen$real:
    verdict=$(judge "$candidate" | tail -n 1)
    case $verdict in
    ok) choose "$candidate" ;;
    headers)
        without_headers="$without_headers$candidate
"
        say "$candidate has no C headers (Python.h)"
        ;;
    *) say "skipped $candidate: $verdict" ;;
    esac
done

for candidate in $without_headers; do
    if "$tools/fetch_headers.sh" "$candidate"; then
        choose "$candidate"
    fi
done
say "no usable interpreter found: install CPython >= 3.11 with venv and headers (Debian:" \
    "apt-get install python3-dev python3-venv) or name one with PYTHON="
exit 2
