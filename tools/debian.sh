# What other scripts need of Debian. shellcheck shell=bash

# need COMMAND PACKAGE: root gets the package where the command is not there.
need() {
    ! command -v "$1" >/dev/null || return 0
    [ "$(id -u)" -eq 0 ] || { echo "$1 is not installed (Debian: apt-get install $2)" >&2; exit 1; }
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$2" >/dev/null
}
