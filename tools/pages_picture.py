#!/usr/bin/env python3
"""Draws the pages of a worker's heap before and after: shared with the parent, or its own.

    pages_picture.py FOLDER [--items N]

Builds the example's catalogue, forks a worker that looks at every third item, sells some and has
the garbage collector run, and writes pages-stock.png and pages-prepared.png into the folder: one
square a page of 4 KiB, from low to high addresses; grey: shared, orange: the worker's copy.  Prints
how many pages there are of each.  Needs CPython 3.12 or later for the second to differ much.
"""

import argparse
import gc
import os
import struct
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cpythonplus import prefork  # noqa: E402
from cpythonplus.prefork._blame import pages  # noqa: E402
from examples.django_catalogue.catalogue import Catalogue, build, sku_of  # noqa: E402

WIDTH = 320  # pages a row
SQUARE = 3  # pixels a page, with the gap
SHARED, OWN, GAP = (196, 200, 205), (224, 108, 32), (255, 255, 255)


def work(catalogue: Catalogue, items: int) -> int:
    """Do what requests do; return something that depends on all of it."""
    seen = 0
    for number in range(0, items, 3):
        item = catalogue.by_sku[sku_of(number)]
        seen += sum(price.net_cents() for price in item.prices.values()) + len(item.name)
        if number % 3000 == 0:
            item.stock["berlin"] = seen % 40
    gc.collect()
    return seen


def pages_of_a_worker(catalogue: Catalogue, items: int) -> bytes:
    """Return one byte for each page that parent and worker both have: 1 for the worker's own."""
    done, parent_done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        work(catalogue, items)
        os.write(done[1], b".")
        os.read(parent_done[0], 1)
        os._exit(0)
    os.read(done[0], 1)
    states = bytearray()
    with pages.Memory(os.getpid()) as here, pages.Memory(pid) as there:
        for each in pages.mappings(os.getpid()):
            if "w" not in each.permissions or each.inode or each.path not in ("", "[heap]"):
                continue
            own = set(there.own_pages(each.start, each.end)[0])
            states += bytes(page in own for page in here.present_pages(each.start, each.end))
    os.write(parent_done[1], b".")
    os.waitpid(pid, 0)
    for end in (*done, *parent_done):
        os.close(end)
    return bytes(states)


def png(states: bytes) -> bytes:
    """Return the picture; the last row may be short."""
    rows = []
    for start in range(0, len(states), WIDTH):
        row = states[start : start + WIDTH]
        line = b"".join(
            bytes(OWN if state else SHARED) * (SQUARE - 1) + bytes(GAP) for state in row
        )
        line += bytes(GAP) * (SQUARE * (WIDTH - len(row)))
        rows += [b"\0" + line] * (SQUARE - 1) + [b"\0" + bytes(GAP) * (SQUARE * WIDTH)]
    size = struct.pack(">IIBBBBB", SQUARE * WIDTH, len(rows), 8, 2, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def main() -> int:
    """Draw both; return the exit status."""
    parser = argparse.ArgumentParser(description="a worker's pages, before and after prepare()")
    parser.add_argument("folder", type=Path, help="where the two pictures go")
    parser.add_argument("--items", type=int, default=110_000, help="size of the catalogue")
    given = parser.parse_args()
    if not given.folder.is_dir():
        print(f"pages_picture: {given.folder} is not a folder", file=sys.stderr)
        return 2
    catalogue = build(given.items)
    for name in ("stock", "prepared"):
        if name == "prepared":
            print(prefork.prepare(lambda: work(catalogue, given.items)))
        states = pages_of_a_worker(catalogue, given.items)
        (given.folder / f"pages-{name}.png").write_bytes(png(states))
        print(f"{name}: {states.count(1):,} of {len(states):,} pages are the worker's own")
    return 0


if __name__ == "__main__":
    sys.exit(main())
