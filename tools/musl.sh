#!/usr/bin/env bash
# The package against musl, the C library of Alpine; called by make inside an environment.
#
# Compiles and links every C file with warnings as errors, and runs the C test programs. The extension is linked
# and not imported: no distribution that is at hand has an interpreter for musl.
# Needs Debian's musl-tools, which root gets here.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/debian.sh
. tools/debian.sh
need musl-gcc musl-tools

folder=$CPYTHONPLUS_BUILD_DIR-musl
multiarch=$(gcc -print-multiarch)
headers=$folder/headers
log=$folder.log

# musl-gcc knows musl's headers only: the kernel's, and Debian's interpreters', are put beside them.
mkdir -p "$headers/$multiarch"
ln -sfn /usr/include/linux /usr/include/asm-generic "/usr/include/$multiarch/asm" "$headers"
for each in "/usr/include/$multiarch"/python3*; do
    [ ! -e "$each" ] || ln -sfn "$each" "$headers/$multiarch"
done
cat >"$folder/native.ini" <<EOF
[binaries]
c = 'musl-gcc'

[built-in options]
c_args = ['-idirafter', '$headers']
EOF

meson setup --reconfigure "$folder/meson" --native-file "$folder/native.ini" -Dtest_hooks=true \
    -Dbuildtype=release -Dwerror=true >"$log" 2>&1 &&
    ninja -k 0 -C "$folder/meson" >>"$log" 2>&1 ||
    { grep -E 'error:|ERROR:' "$log" >&2 || tail -n 20 "$log" >&2; exit 1; }

CPYTHONPLUS_BUILD_DIR=$folder/meson python -m pytest tests/test_c_programs.py "$@"
