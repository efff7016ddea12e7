"""Random calls of the tasklets' API at length: tests/tasklets/fuzz_calls.py with seed after seed.

    python tools/fuzz_calls.py [--calls 10000000] [--first SEED] [--jobs N]

Every fifth run has a second thread.  A run that crashes, hangs or says something is listed, and
what it said stays in build/fuzz_calls; the status is 1 then.  Runs depend on when signals come, so
a seed need not fail each time.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "tasklets" / "fuzz_calls.py"
FOUND = ROOT / "build" / "fuzz_calls"

CALLS_PER_RUN = 5000
RUN_S = 300


def one_run(seed: int) -> tuple[int, int, str]:
    """Return the seed, how many calls were made, and what went wrong, if anything did."""
    threads = ["--thread"] if seed % 5 == 0 else []
    command = [sys.executable, str(PROGRAM), str(seed), str(CALLS_PER_RUN), *threads]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
        said, status = done.stdout + done.stderr, str(done.returncode)
    except subprocess.TimeoutExpired as error:
        said, status = str(error.stdout) + str(error.stderr), f"none within {RUN_S} s"
    calls = said.split(maxsplit=1)[0] if said.strip() else ""
    if status == "0" and len(said.splitlines()) == 1 and calls.isdigit():
        return seed, int(calls), ""
    FOUND.mkdir(parents=True, exist_ok=True)
    report = FOUND / f"{sys.version_info.major}.{sys.version_info.minor}-{seed}.txt"
    report.write_text(said)
    return seed, 0, f"status {status}: {report.relative_to(ROOT)}"


def main() -> int:
    """Run, and say what was found."""
    parser = argparse.ArgumentParser(description="Random calls of the tasklets' API.")
    parser.add_argument("--calls", type=int, default=10_000_000, help="in all (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="seed (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    options = parser.parse_args()
    began, calls, failed = time.monotonic(), 0, 0
    seeds = range(options.first, options.first + -(-options.calls // CALLS_PER_RUN))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seed, made, wrong in pool.map(one_run, seeds):
            calls += made
            if wrong:
                failed += 1
                print(f"seed {seed}: {wrong}", flush=True)
    version = sys.version.split(maxsplit=1)[0]
    print(
        f"{version}: {calls:,} calls in {len(seeds):,} runs, {failed} failed, "
        f"{time.monotonic() - began:.0f} s"
    )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
