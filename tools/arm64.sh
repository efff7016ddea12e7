#!/usr/bin/env bash
# Tests on aarch64 without such a machine: Debian's Python for it in a folder, under qemu's user mode.
#
#   arm64.sh usable                  says in one line why this machine cannot, and fails
#   arm64.sh make                    makes the folder, or keeps the one that works
#   arm64.sh test [PYTEST ARGS...]   compiles the checkout for it and runs tests; default: tests/tasklets
#   arm64.sh short [PYTEST ARGS...]  the same for the part of them, and of the C programs, that CI runs
#   arm64.sh fetch FILE DEST         copies a file out of the copy of the checkout that the tests ran in
#
# The folder is $CPYTHONPLUS_ARM64, else ~/.cache/cpythonplus/arm64; $CPYTHONPLUS_ARM64_SUITE says which Debian
# is put there (default bookworm). Needs root, and gets itself what it uses of Debian: debootstrap,
# qemu-user-static and gcc-aarch64-linux-gnu, since compiling outside of the emulation is ten times as fast.
# Needs Linux 6.7, where programs of another processor can be made known to one namespace only: this
# machine does not notice.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/debian.sh
. tools/debian.sh

# What goes from one stack to another, what waits there, and C programs of what processors may differ in.
short=(
    tests/tasklets/{stacks/test_engine,stacks/test_c_stacks,test_tasklet,test_channel,locks/test_locks,io/test_io_socket}.py
    "tests/test_c_programs.py::test_c_program["{base/test_histogram,tasklets/{stacks/test_stacks,test_timers},threads/test_{lock,waitq}}"]")
arm64=${CPYTHONPLUS_ARM64:-${XDG_CACHE_HOME:-$HOME/.cache}/cpythonplus/arm64}
inside=/srv/cpythonplus
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'

# inside_arm64 FOLDER COMMAND...: mounts and the emulator's registration end with the command.
inside_arm64() {
    # shellcheck disable=SC2016 # expanded inside
    unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc /bin/bash -euc '
        mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
        printf ":qemu-aarch64:M::%s:%s:%s:F" "$1" "$2" "$(command -v qemu-aarch64-static)" \
            >/proc/sys/fs/binfmt_misc/register
        mount -t proc proc "$3/proc"
        mount --rbind /dev "$3/dev"
        shift 2
        exec env -i CC=gcc PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$@"
    ' bash "$magic" "$mask" "$@"
}

python_says() {
    inside_arm64 "$1" /usr/bin/python3 -I -c "import platform, sys, sysconfig; print($2)"
}

works() {
    [ -x "$1/usr/bin/python3" ] && [ "$(python_says "$1" 'platform.machine()' 2>/dev/null)" = aarch64 ]
}

usable() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "arm64: not root"
        return 1
    fi
    local kernel
    kernel=$(uname -r)
    if [ "$(printf '6.7\n%s\n' "$kernel" | sort -V | head -n 1)" != 6.7 ]; then
        echo "arm64: Linux $kernel is older than 6.7"
        return 1
    fi
    if ! unshare --user --map-root-user --mount \
        sh -c 'mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc' 2>/dev/null; then
        echo "arm64: no binfmt_misc in a user namespace here"
        return 1
    fi
}

make_arm64() {
    local partial=$arm64.partial package
    usable >&2
    need qemu-aarch64-static qemu-user-static
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    if works "$arm64"; then
        echo "arm64: using $arm64"
        return
    fi
    need debootstrap debootstrap
    echo "arm64: making $arm64"
    rm -rf --one-file-system "$arm64" "$partial"
    mkdir -p "$partial"
    # Unpacking is enough: nothing that is used needs to be configured.
    unshare --mount debootstrap --force-check-gpg --foreign --arch=arm64 --variant=minbase \
        --include=python3,libpython3-dev,gcc,libc6-dev "${CPYTHONPLUS_ARM64_SUITE:-bookworm}" "$partial" \
        >"$arm64.log" 2>&1 || { tail -n 20 "$arm64.log" >&2; exit 1; }
    for package in "$partial"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar --extract --keep-directory-symlink --directory="$partial"
    done
    rm -f "$partial/proc" # where nothing may be mounted, debootstrap makes a link of it
    mkdir -p "$partial/proc"
    works "$partial" || { echo "arm64: the new folder $partial does not work" >&2; exit 1; }
    mv "$partial" "$arm64"
}

# The extension with its test hooks, built from meson's own lists, and the packages that the tests need.
prepare() {
    local version build=$PWD/build/arm64
    version=$(python_says "$arm64" 'f"{sys.version_info.major}.{sys.version_info.minor}"')
    rm -rf "$arm64$inside"/{checkout,build,python} "$build"
    mkdir -p "$arm64$inside"/{checkout,build} "$build"
    cp -r src tests tools docs pyproject.toml README.md "$arm64$inside/checkout"
    echo '127.0.0.1 localhost' >"$arm64/etc/hosts"
    printf '#!/bin/sh\nexec qemu-aarch64-static -L "%s" -E "PYTHONHOME=%s/usr" "%s/usr/bin/python3" "$@"\n' \
        "$arm64" "$arm64" "$arm64" >"$build/python3"
    chmod +x "$build/python3"
    cat >"$build/cross.ini" <<EOF
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-gcc-ar'
strip = 'aarch64-linux-gnu-strip'
python = '$build/python3'
exe_wrapper = ['qemu-aarch64-static', '-L', '$arm64']

[built-in options]
c_args = ['--sysroot=$arm64']
c_link_args = ['--sysroot=$arm64']

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
EOF
    # shellcheck disable=SC2016 # expanded inside
    tools/in_env.sh --group build -- sh -euc '
        meson setup "$0/meson" --cross-file "$0/cross.ini" -Dtest_hooks=true -Dbuildtype=release \
            -Dpython.platlibdir="$2" -Dpython.purelibdir="$2"
        meson compile -C "$0/meson"
        meson install -C "$0/meson" --destdir "$1"
        cp -r "$0/meson/tests" "$1$3"
    ' "$build" "$arm64" "$inside/python" "$inside/build" >"$build/log" 2>&1 || { tail -n 20 "$build/log" >&2; exit 1; }
    cmp -s requirements/aarch64.txt "$arm64$inside/installed.txt" || install_packages "$version"
}

# The pip is this machine's: it has no use for a Python that is emulated.
install_packages() {
    rm -rf "$arm64$inside/packages"
    "$(tools/pick_python.sh build/python)" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
        --target "$arm64$inside/packages" --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
        --python-version "$1" --only-binary=:all: --no-deps --require-hashes --requirement requirements/aarch64.txt
    cp requirements/aarch64.txt "$arm64$inside/installed.txt"
}

run_tests() {
    make_arm64
    prepare
    # shellcheck disable=SC2016 # expanded inside
    inside_arm64 "$arm64" /bin/sh -c 'cd "$0/checkout" && PYTHONPATH=$0/python:$0/packages CPYTHONPLUS_BUILD_DIR=$0/build \
        exec python3 -m pytest -p no:cacheprovider "$@"' "$inside" "$@"
}

case ${1-} in
usable) usable ;;
make) make_arm64 ;;
test)
    shift
    [ $# -gt 0 ] || set -- tests/tasklets
    run_tests "$@"
    ;;
short)
    shift
    run_tests "${short[@]}" "$@"
    ;;
fetch) cp "$arm64$inside/checkout/$2" "$3" ;;
*)
    echo "usage: arm64.sh usable | make | test|short [PYTEST ARGS...] | fetch FILE DEST" >&2
    exit 2
    ;;
esac
