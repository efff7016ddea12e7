#!/bin/sh
# Runs a command in the environment of the chosen interpreter, setting it up first where needed.
#
#   [PYTHON=...] in_env.sh [--group NAME]... [--variant asan|lies|tsan] -- COMMAND [ARG...]
set -eu
cd "$(dirname "$0")/.."
python=$(tools/pick_python.sh build/python)
exec "$python" tools/setup_env.py "$@"
