#!/usr/bin/env bash
# Debian sid's interpreters in a folder: the newest CPythons, without a toolchain of our own.
#
#   sid.sh make               makes the folder, or keeps the one that works
#   sid.sh version PYTHON     prints the version of an interpreter inside it
#   sid.sh run COMMAND...     runs a command in a copy of the checkout inside it
#   sid.sh fetch FILE DEST    copies a file out of that copy
#   sid.sh put FILE DEST      copies a file into that copy, below build/
#
# The folder is $CPYTHONPLUS_SID, else ~/.cache/cpythonplus/sid; it is kept between runs. Needs root.
# Mounts live in a mount namespace that ends with the command, so nothing is left to unmount.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/debian.sh
. tools/debian.sh

sid=${CPYTHONPLUS_SID:-${XDG_CACHE_HOME:-$HOME/.cache}/cpythonplus/sid}
pythons=(python3.14 python3.15)
# One run of the tests opens the doctor's page in a browser: this machine's, else the one in here.
browser=chromium-headless-shell
# And links sites, in network namespaces, by the programs that a gateway has.
site_packages=(wireguard-tools wireguard-go openssh-server openssh-client iperf3 nftables iproute2
    iputils-ping procps systemd systemd-container)
# What asserts what others take for granted: the tests run on these too.
debug_packages=(python3.14-dbg python3.15-dbg)
# CPython's own tests, of locks and of dicts, are run on ours.
own_tests_packages=(libpython3.14-testsuite libpython3.15-testsuite)
# And has 1,000 tasklets use each of these servers.
server_packages=(redis-server postgresql)
inside=/srv/cpythonplus
ca=/etc/ssl/certs/ca-certificates.crt

# inside_sid FOLDER COMMAND...: in its own process namespace too, so that whatever a crashed test
# left running ends with it.
inside_sid() {
    local folder=$1 name environment
    shift
    environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8)
    # How this machine reaches its package index; the certificates are copied in by `prepare`.
    for name in CI PYTHON COMPAT COMPAT_ARGS CPYTHON_TESTS HTTP_PROXY HTTPS_PROXY NO_PROXY \
        http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT; do
        [ -z "${!name-}" ] || environment+=("$name=${!name}")
    done
    environment+=("PIP_CERT=$ca" "SSL_CERT_FILE=$ca" PIP_DISABLE_PIP_VERSION_CHECK=1)
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --pid --fork --kill-child --mount-proc="$folder/proc" \
        /bin/sh -c 'mount -t sysfs sysfs "$0/sys" 2>/dev/null || true
            mount -t devpts -o ptmxmode=0666 devpts "$0/dev/pts" || true
            exec "$@"' "$folder" \
        env -i "${environment[@]}" chroot "$folder" "$@"
}

works() {
    local python
    [ -x "$1/usr/bin/make" ] && [ -x "$1/usr/bin/gcc" ] || return 1
    for python in "${pythons[@]}"; do
        inside_sid "$1" "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || return 1
    done
}

has_browser() {
    command -v chromium-headless-shell chromium >/dev/null || [ -x "$1/usr/bin/$browser" ]
}

# has FOLDER PACKAGE...: whether all of them are installed in it.
has() {
    local folder=$1 package
    shift
    for package in "$@"; do
        [ -e "$folder/var/lib/dpkg/info/$package.list" ] || return 1
    done
}

# What the tests link sites with goes through a device, which a folder does not have by itself.
add_tunnels() {
    mkdir -p "$sid/dev/net"
    [ -c "$sid/dev/net/tun" ] || mknod -m 0666 "$sid/dev/net/tun" c 10 200
}

# Also into a folder that an older version of this made. The archive's lists may be older than they
# say they can be, where it is a copy. Nothing is started in here.
add() {
    echo "sid: adding $*"
    use_network
    printf '#!/bin/sh\nexit 101\n' >"$sid/usr/sbin/policy-rc.d"
    chmod 0755 "$sid/usr/sbin/policy-rc.d"
    # shellcheck disable=SC2016 # expanded inside
    inside_sid "$sid" /bin/sh -c 'apt-get -qq -o Acquire::Check-Valid-Until=false update &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@"' sh "$@" \
        >"$sid.log" 2>&1 || { tail -n 20 "$sid.log" >&2; exit 1; }
}

# Each test makes a cluster of its own, so Debian's is left out.
add_servers() {
    mkdir -p "$sid/etc/postgresql-common"
    echo 'create_main_cluster = false' >"$sid/etc/postgresql-common/createcluster.conf"
    add "${server_packages[@]}"
}

make_sid() {
    if works "$sid"; then
        echo "sid: using $sid"
        return
    fi
    local partial=$sid.partial packages=gcc,libc6-dev,make,ca-certificates python
    for python in "${pythons[@]}"; do
        packages+=,$python,$python-dev,$python-venv
    done
    echo "sid: making $sid"
    need debootstrap debootstrap
    # A broken or half-made one goes; what an older run may have left mounted in it goes first.
    local folder
    for folder in "$sid" "$partial"; do
        ! mountpoint -q "$folder/proc" || umount "$folder/proc"
        rm -rf --one-file-system "$folder"
    done
    mkdir -p "$partial"
    # debootstrap mounts /proc and /sys while it works.
    unshare --mount debootstrap --force-check-gpg --variant=minbase --include="$packages" sid "$partial" >"$sid.log" 2>&1 ||
        { tail -n 20 "$sid.log" >&2; exit 1; }
    works "$partial" || { echo "sid: the new folder $partial does not work" >&2; exit 1; }
    mv "$partial" "$sid"
}

# The network's names, the certificates and pip's configuration are this machine's.
use_network() {
    local file
    cp -L /etc/resolv.conf "$sid/etc/resolv.conf"
    [ ! -e "$ca" ] || cp -L "$ca" "$sid$ca"
    for file in /etc/pip.conf "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
        [ ! -e "$file" ] || cp -L "$file" "$sid/etc/pip.conf"
    done
}

# The checkout is a copy, of what git knows or would add. Environments and builds of earlier runs stay,
# so the files are new to the compiler whatever their age: an older checkout's objects may be younger
# than they are.
prepare() {
    use_network
    mkdir -p "$sid$inside"
    find "$sid$inside" -mindepth 1 -maxdepth 1 ! -name '.venv-*' ! -name build -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard --deduplicate |
        tar --create --null --files-from=- --ignore-failed-read | tar --extract --touch --directory="$sid$inside"
}

case ${1-} in
make)
    make_sid
    has_browser "$sid" || add "$browser"
    has "$sid" "${site_packages[@]}" || add "${site_packages[@]}"
    has "$sid" "${server_packages[@]}" || add_servers
    has "$sid" "${debug_packages[@]}" || add "${debug_packages[@]}"
    has "$sid" "${own_tests_packages[@]}" || add "${own_tests_packages[@]}"
    add_tunnels
    ;;
version) inside_sid "$sid" "$2" -I -c 'import platform, sys; print(platform.python_version() + sys.abiflags)' ;;
run)
    shift
    prepare
    # shellcheck disable=SC2016 # expanded inside
    inside_sid "$sid" /bin/sh -c 'cd "$0" && exec "$@"' "$inside" "$@"
    ;;
fetch) cp "$sid$inside/$2" "$3" ;;
put)
    mkdir -p "$(dirname "$sid$inside/$3")"
    cp "$2" "$sid$inside/$3"
    ;;
*)
    echo "usage: sid.sh make | version PYTHON | run COMMAND... | fetch FILE DEST | put FILE DEST" >&2
    exit 2
    ;;
esac
