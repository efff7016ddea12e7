"""Runs the tests of cpythonplus-sites with real daemons in folders of several versions of Debian.

    python -m tools.sites_on_debian [SUITE...] [-- PYTEST_ARGS...]

Without a suite: Debian 11, 12 and 13.  Each folder is made by tools/debian_folder.sh, which needs
root.  The tests see that Debian's Python, systemd (which one of them boots), WireGuard, sshd and
nftables, and a missing one fails them.  Debian 11 has Python 3.9, so the tests are those of
`make old-pythons`.
"""

import subprocess
import sys

from tools.old_pythons import FOLDER, copy_tests
from tools.setup_env import BUILD, ROOT, lock_file

SUITES = ("bullseye", "bookworm", "trixie")
ARCHIVE = "sites-tests.tar"
# In the folder's copy of the checkout. The environment stays for runs with the same packages.
RUN = """\
set -eu
lock=$PWD/$1 python=$PWD/build/sites-tests/venv/bin/python
shift
mkdir -p build/sites-tests
rm -rf build/sites-tests/copy
tar -xf build/sites-tests.tar -C build/sites-tests
if ! cmp -s "$lock" build/sites-tests/lock; then
    rm -rf build/sites-tests/venv
    python3 -m venv build/sites-tests/venv
    "$python" -m pip -q install --require-hashes -r "$lock"
    cp "$lock" build/sites-tests/lock
fi
# systemd-analyze of Debian 11 wants to know its control group.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd build/sites-tests/copy
export PYTHONPATH="$PWD:$PWD/sites/src" CPYTHONPLUS_NEED_SITES=1
exec "$python" -m pytest -c sites/tests/old-pythons.ini --rootdir . -p no:cacheprovider "$@"
"""


def run(suite: str, arguments: list[str]) -> int:
    """Make the folder, put the tests into it and run them there; return pytest's status."""
    folder = [str(ROOT / "tools" / "debian_folder.sh"), suite]
    subprocess.run([*folder, "make"], check=True)
    archive = BUILD / ARCHIVE
    subprocess.run(["tar", "-chf", archive, "-C", FOLDER, "copy"], check=True)
    subprocess.run([*folder, "put", archive, f"build/{ARCHIVE}"], check=True, cwd=ROOT)
    lock = str(lock_file("sites-old").relative_to(ROOT))
    words = [*folder, "run", "sh", "-c", RUN, "sh", lock, *arguments]
    return subprocess.run(words, check=False, cwd=ROOT).returncode


def main(arguments: list[str]) -> int:
    """Run the tests in each; 1 where some fail."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    suites, rest = arguments[:cut] or SUITES, arguments[cut + 1 :]
    copy_tests()
    failed = []
    for suite in suites:
        print(f"sites-on-debian: {suite}", flush=True)
        if run(suite, rest or ["-q", "-k", "real", "sites/tests"]) != 0:
            failed.append(suite)
    for suite in failed:
        print(f"sites-on-debian: {suite} failed", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
