"""Builds the documentation's site.

python -m tools.docs_site           writes build/site; warnings are errors, links are checked
python -m tools.docs_site --web     asks the web for the pages outside that are linked, instead
"""

import argparse
import os
import subprocess
import sys

from tools.docs_site import moved, stage
from tools.docs_site.links import broken
from tools.docs_site.modules import described_modules

BUILD = stage.ROOT / "build"
PAGES, SITE = BUILD / "site-pages", BUILD / "site"


def sphinx(builder: str, output: str) -> int:
    """Run Sphinx over the pages; return its exit status."""
    command = [sys.executable, "-m", "sphinx", "--builder", builder, "--fail-on-warning"]
    # Anew each time: of pages that are not read again Sphinx repeats no warning.
    command += [
        "--fresh-env",
        "--keep-going",
        "--quiet",
        "--jobs",
        "auto",
        "--conf-dir",
        "tools/docs_site",
    ]
    command += ["--doctree-dir", str(BUILD / "site-doctrees"), str(PAGES), output]
    environment = {**os.environ, "PYTHONPATH": str(stage.ROOT)}
    return subprocess.run(command, check=False, cwd=stage.ROOT, env=environment).returncode


def remove_stale(site: stage.Site) -> None:
    """Remove what an earlier build made of pages that are gone: Sphinx leaves them."""
    for page in SITE.rglob("*.html"):
        if page.relative_to(SITE).with_suffix("").as_posix() not in site.pages:
            page.unlink()


def main() -> int:
    """Build; return the exit status."""
    parser = argparse.ArgumentParser(prog="make site", description="build the documentation's site")
    parser.add_argument("--web", action="store_true", help="check the links into the web instead")
    given = parser.parse_args()
    modules, others = described_modules()
    site = stage.Site(modules=modules, other_modules=others)
    try:
        site.build()
    except stage.SiteError as error:
        print(error, file=sys.stderr)
        return 1
    stage.write(site, PAGES)
    if given.web:
        return sphinx("linkcheck", str(BUILD / "site-links"))
    remove_stale(site)
    status = sphinx("html", str(SITE))
    moved.write(SITE)
    found = broken(SITE)
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    if status or found:
        return 1
    print(f"site: {len(site.pages)} pages, first {SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
