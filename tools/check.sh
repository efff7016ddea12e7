#!/usr/bin/env bash
# All checks that need no running program; every one runs, then the failed ones are named.
# --fix: rewrites what the formatters and linters can put right, instead.
set -euo pipefail

mapfile -d '' c_files < <(find src tests -name '*.[ch]' -print0 | sort -z)

if [ "${1-}" = --fix ]; then
    ruff check --fix --quiet . || true
    ruff format .
    [ "${#c_files[@]}" -eq 0 ] || clang-format -i "${c_files[@]}"
    exit 0
fi

failed=()
step() {
    local name=$1
    shift
    echo "check: $name"
    "$@" || failed+=("$name")
}

step 'ruff check' ruff check --quiet .
step 'ruff format' ruff format --check --quiet --diff .
step 'mypy' mypy
[ "${#c_files[@]}" -eq 0 ] || step 'clang-format' clang-format --dry-run -Werror "${c_files[@]}"
step 'cpythonplus lint' python -m cpythonplus lint src lint/src sites/src benchmarks survey tools examples
step 'codespell' codespell README.md CONTRIBUTING.md SECURITY.md docs src lint sites tools tests changes
step 'prose' python -m tools.prose
step 'locked packages' python -m tools.lock --check
step 'layering' python -m pytest --quiet -p no:cacheprovider tests/test_layering.py

if [ "${#failed[@]}" -gt 0 ]; then
    (IFS=,; echo "check: failed: ${failed[*]}" >&2)
    exit 1
fi
echo 'check: all clean'
