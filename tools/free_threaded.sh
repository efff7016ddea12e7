#!/usr/bin/env bash
# CPython without a GIL, built from Debian's source package: no distribution has it, and no registry of packages.
#
#   free_threaded.sh VERSION [PREFIX]          builds PREFIX/bin/pythonVERSIONt, or keeps the one that works
#   free_threaded.sh --tsan VERSION [PREFIX]   the same with ThreadSanitizer: for environments of the other one, since it
#                                              would take an hour to fill one
#
# VERSION is 3.13 (Debian 13) or 3.14 or 3.15 (Debian sid). PREFIX is /usr/local, where `debian_folder.sh SUITE run` keeps it
# between runs. It takes some minutes. Root is needed where the C libraries' headers are not there.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
options=(--disable-gil --with-ensurepip=install)
if [ "${1-}" = --tsan ]; then
    options=(--disable-gil --without-ensurepip --with-thread-sanitizer)
    shift
fi
version=${1-} prefix=${2-/usr/local}
case $version in
3.13) suite=trixie ;;
3.14 | 3.15) suite=sid ;;
*) sed -n 's/^#   free_threaded.sh/usage: free_threaded.sh/p' "$0" >&2; exit 2 ;;
esac
python=$prefix/bin/python${version}t

# Its other names would stand before the distribution's own in PATH.
keep_one_name() { rm -f "$prefix/bin/"{idle,pip,pydoc,python}"$version"; }

if "$python" -I -c 'import ctypes, ensurepip, sqlite3, ssl, venv' 2>/dev/null </dev/null; then
    keep_one_name
    echo "python${version}t: using $python"
    exit 0
fi
echo "python${version}t: building $python"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$prefix/python${version}t.log
mkdir -p "$prefix" "$work/lists/partial"
quietly() { "$@" >>"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; exit 1; }; }
: >"$log"

missing=()
for package in gcc libc6-dev make xz-utils libbz2-dev libffi-dev liblzma-dev libsqlite3-dev libssl-dev zlib1g-dev; do
    compgen -G "/var/lib/dpkg/info/$package.list" >/dev/null ||
        compgen -G "/var/lib/dpkg/info/$package:*.list" >/dev/null || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
    quietly apt-get -o Acquire::Check-Valid-Until=false update
    DEBIAN_FRONTEND=noninteractive quietly apt-get -y --no-install-recommends install "${missing[@]}"
fi

# The machine's own lists stay as they are: it may be another Debian.
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
    >"$work/sources.list"
archive() {
    quietly apt-get -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$work/lists" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false "$@"
}
archive update
(cd "$work" && archive source --download-only "python$version")
mkdir "$work/source"
tar -C "$work/source" --strip-components=1 -xf "$work"/python*.orig.tar.?z
cd "$work/source"
quietly ./configure --prefix="$prefix" "${options[@]}"
quietly make -j "$(nproc)"
# What is imported is compiled then: with TSan this takes longer than the build.
quietly make altinstall COMPILEALL_OPTS=-x.
keep_one_name
[ ! -d Tools/tsan ] || cp -r Tools/tsan "$prefix/lib/python${version}t/"
"$python" -I -c 'import ctypes, ensurepip, sqlite3, ssl, venv'
