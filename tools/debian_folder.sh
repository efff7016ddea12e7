#!/usr/bin/env bash
# Debian's interpreters in a folder: the ones that people have, and the newest, without a toolchain of our own.
#
#   debian_folder.sh SUITE make               makes the folder, or keeps the one that works
#   debian_folder.sh SUITE version PYTHON     prints the version of an interpreter inside it
#   debian_folder.sh SUITE run COMMAND...     runs a command in a copy of the checkout inside it
#   debian_folder.sh SUITE newcomer COMMAND...  the same as an ordinary user, in a clone below /tmp whose path has a space
#   debian_folder.sh SUITE fetch FILE DEST    takes a file out of the copy that `run` made; fetch_clone: of that clone
#   debian_folder.sh SUITE put FILE DEST      copies a file into that copy, below build/
#
# SUITE is bullseye (Debian 11: 3.9, which is for cpythonplus-sites alone), bookworm (Debian 12: 3.11), trixie
# (Debian 13: 3.13) or sid (the newest 3.13, 3.14 and 3.15).
# The folder is $CPYTHONPLUS_DEBIAN/SUITE, else ~/.cache/cpythonplus/SUITE; it is kept between runs. Needs root.
# Mounts live in a mount namespace that ends with the command, so nothing is left to unmount.
set -euo pipefail
shopt -s extglob

cd "$(dirname "$0")/.."
# shellcheck source=tools/debian.sh
. tools/debian.sh

suite=${1-}
folder=${CPYTHONPLUS_DEBIAN:-${XDG_CACHE_HOME:-$HOME/.cache}/cpythonplus}/$suite
inside=/srv/cpythonplus
clone="/tmp/a clone/cpythonplus"
ca=/etc/ssl/certs/ca-certificates.crt

packages=(gcc libc6-dev make ca-certificates git)
# Sites are linked, in network namespaces, by the programs that a gateway of this Debian has.
packages+=(wireguard-tools openssh-server openssh-client iperf3 nftables iproute2
    iputils-ping procps systemd systemd-container)
case $suite in
bullseye) pythons=(python3.9) packages+=(python3-dev python3-venv patchelf) ;;
bookworm) pythons=(python3.11) packages+=(python3-dev python3-venv) ;;
trixie) pythons=(python3.13) packages+=(python3-dev python3-venv) ;;
sid)
    pythons=(python3.13 python3.14 python3.15)
    # Debug builds assert what others take for granted.
    packages+=(python3.14-dbg python3.15-dbg)
    # CPython's own tests are run on ours.
    packages+=(libpython3.13-testsuite libpython3.14-testsuite libpython3.15-testsuite)
    # A thousand tasklets use each of these servers.
    packages+=(redis-server postgresql)
    # The doctor's page is opened in a browser: this machine's, else the one in here.
    command -v chromium-headless-shell chromium >/dev/null || packages+=(chromium-headless-shell)
    ;;
*) set -- ;;
esac
[ "$suite" = bullseye ] || packages+=(wireguard-go)
for python in "${pythons[@]}"; do packages+=("$python" "$python-dev" "$python-venv"); done

# in_folder FOLDER [CHROOT OPTION...] COMMAND...: in its own process namespace too, so that whatever a crashed test
# left running ends with it. Its first process is root's, and anybody may make semaphores in its shared memory, as on
# a machine.
in_folder() {
    local root=$1 name environment
    shift
    environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="${home:-/root}" LANG=C.UTF-8)
    # How this machine reaches its package index; the certificates are copied in by `use_network`.
    for name in CI PYTHON COMPAT COMPAT_ARGS CPYTHON_TESTS HTTP_PROXY HTTPS_PROXY NO_PROXY \
        http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT; do
        [ -z "${!name-}" ] || environment+=("$name=${!name}")
    done
    environment+=("PIP_CERT=$ca" "SSL_CERT_FILE=$ca" PIP_DISABLE_PIP_VERSION_CHECK=1)
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" \
        /bin/sh -c 'mount -t sysfs sysfs "$0/sys" 2>/dev/null || true
            mount -t devpts -o ptmxmode=0666 devpts "$0/dev/pts" || true
            mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm" || true
            "$@"
            exit $?' "$root" \
        env -i "${environment[@]}" chroot ${user:+--userspec="$user"} "$root" "$@"
}

# It can be entered, and packages may be added to it.
works() {
    [ -x "$1/usr/bin/apt-get" ] && in_folder "$1" true >/dev/null 2>&1
}

is_whole() {
    local python
    [ -x "$1/usr/bin/make" ] && [ -x "$1/usr/bin/gcc" ] || return 1
    for python in "${pythons[@]}"; do
        in_folder "$1" "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || return 1
    done
}

# Also into a folder that an older version of this made: debootstrap itself does not know packages that another one
# provides, as python3.11-venv needs. The archive's lists may be older than they say they can be,
# where it is a copy. Nothing is started in here, and each test that needs PostgreSQL makes a cluster of its own.
add_missing() {
    local package missing=()
    for package in "${packages[@]}"; do
        compgen -G "$folder/var/lib/dpkg/info/$package?(:*).list" >/dev/null || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "$suite: adding ${missing[*]}"
    use_network
    mkdir -p "$folder/etc/postgresql-common"
    echo 'create_main_cluster = false' >"$folder/etc/postgresql-common/createcluster.conf"
    printf '#!/bin/sh\nexit 101\n' >"$folder/usr/sbin/policy-rc.d"
    chmod 0755 "$folder/usr/sbin/policy-rc.d"
    # shellcheck disable=SC2016 # expanded inside
    in_folder "$folder" /bin/sh -c 'apt-get -qq -o Acquire::Check-Valid-Until=false update &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@"' sh "${missing[@]}" \
        >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }
}

make_folder() {
    if works "$folder"; then
        echo "$suite: using $folder"
        return
    fi
    local partial=$folder.partial each
    echo "$suite: making $folder"
    need debootstrap debootstrap
    # A broken or half-made one goes; what an older run may have left mounted in it goes first.
    for each in "$folder" "$partial"; do
        ! mountpoint -q "$each/proc" || umount "$each/proc"
        rm -rf --one-file-system "$each"
    done
    mkdir -p "$partial"
    # debootstrap mounts /proc and /sys while it works.
    unshare --mount debootstrap --force-check-gpg --variant=minbase --include=ca-certificates "$suite" "$partial" \
        >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }
    mv "$partial" "$folder"
}

# Debian 11 has WireGuard in its kernel alone. Where this machine's kernel has none, the tests need Debian 12's
# wireguard-go, which needs Debian 12's C library: it gets that from a folder of its own.
add_wireguard_go() {
    ! [ -x "$folder/usr/bin/wireguard-go" ] || return 0
    use_network
    echo 'APT::Default-Release "bullseye";' >"$folder/etc/apt/apt.conf.d/release"
    echo 'deb http://deb.debian.org/debian bookworm main' >"$folder/etc/apt/sources.list.d/bookworm.list"
    # shellcheck disable=SC2016 # expanded inside
    in_folder "$folder" /bin/sh -ec 'mkdir -p /usr/lib/bookworm && cd /usr/lib/bookworm
        apt-get -qq -o Acquire::Check-Valid-Until=false update
        apt-get -qq download wireguard-go/bookworm libc6/bookworm
        for each in *.deb; do dpkg -x "$each" .; done
        lib=/usr/lib/bookworm/lib/$(uname -m)-linux-gnu
        set -- $lib/ld-linux-*.so.*
        patchelf --set-interpreter "$1" --set-rpath "$lib" usr/bin/wireguard-go
        mv usr/bin/wireguard-go /usr/bin' >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }
}

# Tests link sites through a device, and one user is not root.
complete() {
    mkdir -p "$folder/dev/net"
    [ -c "$folder/dev/net/tun" ] || mknod -m 0666 "$folder/dev/net/tun" c 10 200
    grep -q '^newcomer:' "$folder/etc/passwd" || in_folder "$folder" useradd --create-home newcomer
}

# The network's names, the certificates and pip's configuration are this machine's.
use_network() {
    local file
    cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
    [ -e "$folder/etc/hosts" ] || printf '127.0.0.1 localhost\n::1 localhost\n' >"$folder/etc/hosts"
    [ ! -e "$ca" ] || cp -L "$ca" "$folder$ca"
    for file in /etc/pip.conf "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
        [ ! -e "$file" ] || cp -L "$file" "$folder/etc/pip.conf"
    done
}

# copy_into PLACE: what git knows or would add. Environments and builds of earlier runs stay, so the files are new to
# the compiler whatever their age: an older checkout's objects may be younger than they are. A commit without changes
# is copied once, so that nothing is taken away under a run that goes on there.
copy_into() {
    local state=
    use_network
    mkdir -p "$folder$1"
    exec 9>"$folder$1/.copying"
    flock 9
    [ -n "$(git status --porcelain)" ] || state=$(git rev-parse HEAD)
    if [ -n "$state" ] && [ "$(cat "$folder$1/.copied" 2>/dev/null)" = "$state" ]; then
        exec 9>&-
        return
    fi
    find "$folder$1" -mindepth 1 -maxdepth 1 ! -name '.venv-*' ! -name build ! -name .copying -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard --deduplicate |
        tar --create --null --files-from=- --ignore-failed-read | tar --extract --touch --directory="$folder$1"
    echo "$state" >"$folder$1/.copied"
    exec 9>&-
}

case ${2-} in
make)
    make_folder
    add_missing
    [ "$suite" != bullseye ] || add_wireguard_go
    complete
    is_whole "$folder" || { echo "$suite: $folder does not work: remove it" >&2; exit 1; }
    ;;
version) in_folder "$folder" "$3" -I -c 'import platform, sys; print(platform.python_version() + sys.abiflags)' ;;
run)
    shift 2
    copy_into "$inside"
    # shellcheck disable=SC2016 # expanded inside
    in_folder "$folder" /bin/sh -c 'cd "$0" && exec "$@"' "$inside" "$@"
    ;;
newcomer)
    shift 2
    # New each time: a newcomer's first `make` is what is tried.
    rm -rf "$folder${clone%/*}"
    copy_into "$clone"
    in_folder "$folder" chown -R newcomer: "${clone%/*}"
    # shellcheck disable=SC2016 # expanded inside
    home=/home/newcomer user=newcomer: in_folder "$folder" /bin/sh -c 'cd "$0" && exec "$@"' "$clone" "$@"
    ;;
fetch) mv "$folder$inside/$3" "$4" ;;
fetch_clone) cp "$folder$clone/$3" "$4" ;;
put)
    mkdir -p "$(dirname "$folder$inside/$4")"
    cp "$3" "$folder$inside/$4"
    ;;
*)
    sed -n 's/^#   debian_folder.sh/usage: debian_folder.sh/p' "$0" >&2
    exit 2
    ;;
esac
