"""What each distribution needs at run time is in its sbom.cdx.json, and that is in the sdist."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import child_environment
from tools.setup_env import LINT, ROOT, SITES, lock_file, pyproject

pytestmark = pytest.mark.any_version

SBOM = "sbom.cdx.json"

each = pytest.mark.parametrize(
    ("folder", "group"), [(ROOT, "runtime"), (LINT, None), (SITES, "sites")]
)


def listed(folder: Path = ROOT) -> dict[str, Any]:
    bom = json.loads((folder / SBOM).read_text())
    assert bom["bomFormat"] == "CycloneDX"
    return {canonicalize_name(each["name"]): each for each in bom.get("components", [])}


@each
def test_it_has_every_dependency_with_version_and_licence(folder: Path, group: str | None) -> None:
    project = pyproject(folder)["project"]
    extras = project.get("optional-dependencies", {})
    used = extras.get("serve", [])
    components = listed(folder)
    for text in [*project["dependencies"], *used]:
        requirement = Requirement(text)
        machine = {"sys_platform": "linux", "platform_machine": "x86_64"}
        if requirement.marker is None or requirement.marker.evaluate(machine):
            component = components[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(component["version"]), text
    for name, component in components.items():
        assert component["licenses"], name
        assert canonicalize_name(component["purl"]) == canonicalize_name(
            f"pkg:pypi/{name}@{component['version']}"
        )


@each
def test_it_is_of_the_locked_versions_and_of_this_one(folder: Path, group: str | None) -> None:
    locked = lock_file(group).read_text() if group is not None else ""
    pins = re.findall(r"^([\w.-]+)==(\S+)", locked, re.MULTILINE)
    versions = {name: component["version"] for name, component in listed(folder).items()}
    assert versions == {name: pin for name, pin in pins if name in versions}
    package = json.loads((folder / SBOM).read_text())["metadata"]["component"]
    assert package["version"] == version(package["name"]), "make sbom"


@each
def test_it_names_no_address(folder: Path, group: str | None) -> None:
    text = (folder / SBOM).read_text().replace('"$schema": "http://cyclonedx.org/', "")
    assert "://" not in text


def test_what_replaces_insides_has_an_upper_bound() -> None:
    project = pyproject(ROOT)["project"]
    (pin,) = re.findall(r"^gunicorn==(\d+)", lock_file("runtime").read_text(), re.MULTILINE)
    groups = pyproject(ROOT)["dependency-groups"]
    for entries in (project["optional-dependencies"]["serve"], groups["bench"], groups["demo"]):
        (bounds,) = (
            requirement.specifier
            for requirement in map(Requirement, entries)
            if requirement.name == "gunicorn"
        )
        assert bounds.contains(f"{pin}.99")
        assert not bounds.contains(f"{int(pin) + 1}.0")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="meson packs what git knows")
def test_it_is_in_the_sdist(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(
        ".git", ".venv-*", "build", "*.egg-info", "__pycache__", ".*_cache"
    )
    shutil.copytree(ROOT, checkout, ignore=ignored)
    names = ("AUTHOR", "COMMITTER")
    identity = {f"GIT_{name}_{key}": "x@example" for name in names for key in ("NAME", "EMAIL")}
    environment = child_environment(identity)
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", *arguments], cwd=checkout, check=True, env=environment)
    program = "import mesonpy, sys; mesonpy.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        cwd=checkout,
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = archive.extractfile(f"{archive.getnames()[0].split('/')[0]}/{SBOM}")
        assert packed is not None
        assert packed.read() == (ROOT / SBOM).read_bytes()
