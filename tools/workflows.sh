#!/usr/bin/env bash
# The linters of .github/workflows: zizmor for what an attacker could use, actionlint for the rest.
# actionlint is a Go module, whose go.sum has the hashes; where there is no Go it is left out.
set -euo pipefail

cd "$(dirname "$0")/.."
workflows=("$PWD"/.github/workflows/*.yml)
status=0

echo 'workflows: zizmor'
zizmor --offline --no-progress --quiet "${workflows[@]}" || status=1

if command -v go >/dev/null; then
    echo 'workflows: actionlint'
    # What it would call besides is another thing on each machine.
    go -C tools/actionlint tool actionlint -shellcheck= -pyflakes= "${workflows[@]}" || status=1
else
    echo 'workflows: actionlint is left out, since there is no Go'
fi
exit "$status"
