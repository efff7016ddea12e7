#!/bin/sh
# Fetches the C headers of a Debian interpreter without root, into build/headers/<version>.
#
#   fetch_headers.sh PYTHON
#
# Debian's python3 comes without Python.h; libpython3.x-dev has it, and unpacking that one package is
# enough for building an extension. tools/setup_env.py finds the folder and puts it on CPATH.
# Exit status 1, after one line that names the package, where this cannot be done.
set -eu

python=$1
version=$("$python" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])')
package=libpython$version-dev
target=build/headers/$version

fail() {
    echo "python: $python: $1; install $package (apt-get install $package), or set PYTHON=" >&2
    exit 1
}

if [ -f "$target/usr/include/python$version/Python.h" ]; then
    exit 0
fi
for tool in apt-get dpkg dpkg-query; do
    command -v "$tool" >/dev/null || fail "its headers are missing and there is no $tool to fetch them"
done
# Debian's headers fit Debian's interpreter only.
dpkg-query -S "$(readlink -f "$python")" >/dev/null 2>&1 || fail "its headers are missing and it is not Debian's"

work=$PWD/build/headers/$version.partial
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
log=$work/log
# Package lists of our own, so that neither root nor an earlier `apt-get update` is needed.
private="-o Dir::State::Lists=$work/lists -o Dir::Cache=$work/cache -o APT::Sandbox::User=root"
if ! (cd "$work" && apt-get -q download "$package") >"$log" 2>&1; then
    # shellcheck disable=SC2086 # options without spaces
    (cd "$work" && apt-get -q $private update && apt-get -q $private download "$package") >>"$log" 2>&1 ||
        fail "its headers are missing and fetching them failed (see $log)"
fi
dpkg -x "$work/$package"_*.deb "$work/root" || fail "its headers are missing and could not be unpacked"
rm -rf "$target"
mv "$work/root" "$target"
rm -rf "$work"
echo "python: fetched the headers of $python from Debian's $package" >&2
