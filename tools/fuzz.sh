#!/usr/bin/env bash
# Fuzzes what reads bytes that another process sent: the parser of the doctor's requests.
#
# fuzz.sh [SECONDS]: with clang's libFuzzer, the address and the undefined-behaviour sanitizers. The
# corpus in tests/memory/request_corpus is where it begins; what it finds besides stays in build/fuzz.
set -euo pipefail

seconds=${1:-60}
clang=${CLANG:-$(command -v clang || compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -V | tail -1)}
if [ -z "$clang" ]; then
    echo 'fuzz: clang with libFuzzer is wanted (Debian: clang, libclang-rt-dev); CLANG=... names it' >&2
    exit 2
fi
mkdir -p build/fuzz/found
"$clang" -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -Isrc/cpythonplus tests/doctor/fuzz_request.c src/cpythonplus/_doctor/agent/request.c \
    -o build/fuzz/fuzz_request
build/fuzz/fuzz_request -max_total_time="$seconds" -max_len=600 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/ build/fuzz/found tests/memory/request_corpus
