"""Lays the Markdown files of the repository out as the pages of one site.

In the repository a link is a path that GitHub follows.  Here each page gets a place in the site,
and each link is rewritten to lead from one place to another:

    docs/<folder>/<page>.md           <folder>/<page>
    docs/<folder>/README.md           <folder>/index
    lint/README.md, lint/docs/...     lint/index, lint/..., and so for sites/
    README.md                         index
    docs/README.md                    a page for each of its sections: how-to/index and others
    another Markdown file             project/..., if a page links it
    another file                      a copy, if a page links it
    a folder                          where `Source` of the project's URLs has it, or just a name

The tables of contents are what docs/README.md and a folder's README.md link, in that order.  A page
that none of them links is in no table of contents.  Sphinx warns of it, which fails the build.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import relpath

ROOT = Path(__file__).resolve().parent.parent.parent
OTHERS = ("lint", "sites")
"""The folders of other distributions, each with its docs."""
START, CONTENTS = Path("README.md"), Path("docs/README.md")
CHANGES = "project/changelog"
# Diataxis' names for the sections of docs/README.md, by the folder that a section links first.
TITLES = {
    "tutorial": "Tutorials",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
}

_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<target>[^)\s]+)\)")
_PICTURE = re.compile(
    r'<picture>\s*<source[^>]*srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\s*</picture>'
)
_SECTION = re.compile(r"^## ", re.MULTILINE)


class SiteError(Exception):
    """What keeps the site from being built, a line each."""


def place_of(path: Path) -> str:
    """Return the place of a file of the repository in the site, without `.md`."""
    parts = path.parts
    if parts[0] == "docs":
        parts = parts[1:]
    elif parts[0] in OTHERS and parts[1] == "docs":
        parts = (parts[0], *parts[2:])
    elif parts[0] not in OTHERS and path != START:
        parts = ("project", *parts)
    if path.suffix != ".md":
        return "/".join(parts)
    name = "index" if path.name == "README.md" else path.stem.lower()
    return "/".join((*parts[:-1], name))


def slug(heading: str) -> str:
    """Return what a link to a heading has behind `#`, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


def prose_links(text: str) -> list[str]:
    """Return the targets of all links outside of blocks of code."""
    return [match["target"] for match in _LINK.finditer(_FENCED.sub("", text))]


def outside(target: str) -> bool:
    """Whether a link leads into the web."""
    return re.match(r"[a-z]+:", target) is not None


@dataclass
class Section:
    """One of docs/README.md's: its place, its title, and its text."""

    place: str
    title: str
    text: str


@dataclass
class Site:
    """All pages: what they are made from, and what came out."""

    root: Path = ROOT
    modules: list[str] = field(default_factory=list)
    """Those with a page of the API."""
    other_modules: dict[str, str] = field(default_factory=dict)
    """What each of the others is for."""
    problems: list[str] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    """Texts by place."""
    files: dict[str, Path] = field(default_factory=dict)
    """What is copied as it is, by place."""

    def __post_init__(self) -> None:
        with (self.root / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file)["project"]
        self.source = project.get("urls", {}).get("Source", "").removesuffix("/")
        self.sections = list(self._sections())
        self._anchors = dict(self._section_anchors())

    def text_of(self, path: Path) -> str:
        """Return the text of a file of the repository."""
        return (self.root / path).read_text("utf-8")

    # ---- which pages there are ------------------------------------------------------------------

    def sources(self) -> list[Path]:
        """Return the Markdown files that become pages as they are; what they link comes along."""
        others = [each for each in OTHERS if (self.root / each).exists()]
        found = [START, *(Path(each, "README.md") for each in others)]
        for folder in ("docs", *(f"{each}/docs" for each in others)):
            found += sorted(p.relative_to(self.root) for p in (self.root / folder).rglob("*.md"))
        found.remove(CONTENTS)
        for path in found:  # which grows meanwhile
            for target in self._targets(path):
                if target.suffix == ".md" and target not in (*found, CONTENTS):
                    found.append(target)
        return found

    def _targets(self, path: Path) -> Iterator[Path]:
        """Yield the files of the repository that a page links."""
        for target in prose_links(self.text_of(path)):
            name = target.partition("#")[0]
            if name and not outside(target):
                file = (self.root / path.parent / name).resolve()
                if file.is_file() and file.is_relative_to(self.root):
                    yield file.relative_to(self.root)

    def _sections(self) -> Iterator[Section]:
        taken = set()
        for part in _SECTION.split(self.text_of(CONTENTS))[1:]:
            title, _, text = part.partition("\n")
            first = next(iter(prose_links(text)), "")
            folder = PurePosixPath(first).parts[0] if "/" in first else ""
            if folder not in TITLES or folder in taken:
                folder = slug(title)
            taken.add(folder)
            yield Section(f"{folder}/index", TITLES.get(folder, title), text)

    def _section_anchors(self) -> Iterator[tuple[str, str]]:
        """Yield the headings of docs/README.md and where each is in the site."""
        titles = [part.partition("\n")[0] for part in _SECTION.split(self.text_of(CONTENTS))[1:]]
        for title, section in zip(titles, self.sections, strict=True):
            yield slug(title), f"{section.place}.md"
            for heading in re.findall(r"^### (.*)$", section.text, re.MULTILINE):
                yield slug(heading), f"{section.place}.md#{slug(heading)}"

    # ---- links ----------------------------------------------------------------------------------

    def rewritten(self, text: str, path: Path, place: str) -> str:
        """Return the text of the file `path` with its links as they are at `place`."""
        folder = PurePosixPath(place).parent

        def link(match: re.Match[str]) -> str:
            target = match["target"]
            if outside(target) or target.startswith("#"):
                return match[0]
            there = self._there(target, path)
            if there is None:  # a folder
                return match["text"][1:-1]
            if not outside(there):
                there = relpath(there, folder)
            return f"{match['text']}({there})"

        def picture(match: re.Match[str]) -> str:
            return "\n\n".join(
                f"![{match['alt']}]({target}){{.only-{scheme}}}"
                for scheme in ("light", "dark")
                for target in [relpath(str(self._there(match[scheme], path)), folder)]
            )

        parts = _FENCED.split(text)
        # GitHub draws these; without the network the site shows what they are drawn from.
        parts[1::2] = [re.sub(r"^```mermaid", "```text", part) for part in parts[1::2]]
        parts[::2] = [_PICTURE.sub(picture, _LINK.sub(link, part)) for part in parts[::2]]
        return "".join(parts)

    def _there(self, target: str, path: Path) -> str | None:
        """Return where in the site a link of the file `path` leads; None: to a folder's name."""
        name, hash_, anchor = target.partition("#")
        file = (self.root / path.parent / name).resolve()
        if not file.exists() or not file.is_relative_to(self.root):
            self.problems.append(f"{path}: {target}: there is no such file")
            return None
        found = file.relative_to(self.root)
        if found == CONTENTS:
            return self._anchors.get(anchor, "index.md") if anchor else "index.md"
        if file.is_dir():
            return f"{self.source}/tree/main/{found.as_posix()}" if self.source else None
        if found.suffix == ".md":
            return f"{place_of(found)}.md{hash_}{anchor}"
        self.files[place_of(found)] = file
        return place_of(found)

    # ---- pages ----------------------------------------------------------------------------------

    def build(self) -> None:
        """Fill `pages` and `files`; raise SiteError for links that lead nowhere."""
        sources = {place_of(path): path for path in self.sources()}
        for place, path in sources.items():
            self.pages[place] = self.rewritten(self.text_of(path), path, place)
        for section in self.sections:
            text = self.rewritten(section.text, CONTENTS, section.place)
            text = re.sub(r"^###", "##", text, flags=re.MULTILINE)
            self.pages[section.place] = f"# {section.title}\n{text}"
        self._api_pages()
        if self.problems:
            raise SiteError("\n".join(self.problems))
        self._contents()
        # Its entries name everything, so that it would be found before the pages about it.
        if CHANGES in self.pages:
            self.pages[CHANGES] = f"---\nno-search: true\n---\n\n{self.pages[CHANGES]}"

    def _api_pages(self) -> None:
        for name in self.modules:
            title = name.removeprefix("cpythonplus.")
            page = f"# {title}\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"
            self.pages[f"api/{name}"] = page
        lines = [
            "# Python API",
            "The public names of each module, from their docstrings. The",
            "[reference](../reference/index.md) says more about most of them.\n",
            *(f"- [{name}]({name}.md)" for name in self.modules),
        ]
        if self.other_modules:
            lines.append("\nNamed in a configuration, or in place of a standard module:\n")
            lines += [f"- `{name}`: {purpose}" for name, purpose in self.other_modules.items()]
        self.pages["api/index"] = "\n".join(lines) + "\n"

    def _contents(self) -> None:
        """Add tables of contents to the sections, the folders' indices, and the first page."""
        linked = {section.place: self._linked(section.text) for section in self.sections}
        everywhere = [page for pages in linked.values() for page in pages]
        project = sorted(page for page in self.pages if page.startswith("project/"))
        # Folders with a README.md of their own, and the API.
        folders = [page for page in self.pages if page.endswith("/index")]
        folders = [page for page in folders if page not in (*linked, *project)]
        listed = {"index", *folders}  # a page is in the first table that asks for it

        def add(place: str, pages: Iterable[str], caption: str = "") -> None:
            new = [page for page in dict.fromkeys(pages) if page not in listed]
            listed.update(new)
            self.pages[place] += toctree(new, caption)

        for folder in folders:
            own = folder.removesuffix("index")
            pages = [*everywhere, *self._own_links(folder)]
            add(folder, (page for page in pages if page.startswith(own)))
        for place, pages in linked.items():
            add(place, pages)
        self.pages["index"] += toctree([*linked, *folders])
        add("index", (page for page in project if page.count("/") == 1), "Project")
        add("project/contributing", project)

    def _linked(self, text: str) -> list[str]:
        targets = [target.partition("#")[0] for target in prose_links(text)]
        paths = [(self.root / CONTENTS.parent / name).resolve() for name in targets if name]
        inside = [path.relative_to(self.root) for path in paths if path.suffix == ".md"]
        return [place_of(path) for path in inside]

    def _own_links(self, place: str) -> list[str]:
        targets = [target.partition("#")[0] for target in prose_links(self.pages[place])]
        folder = PurePosixPath(place).parent
        places = [relpath(folder / target).removesuffix(".md") for target in targets]
        return [place for place in places if place in self.pages]


def toctree(pages: list[str], caption: str = "") -> str:
    """Return a table of contents that only the navigation shows."""
    if not pages:
        return ""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    entries = [f"/{page}" for page in pages]
    return "\n".join(["\n\n```{toctree}", *options, "", *entries, "```", ""])


def write(site: Site, folder: Path) -> None:
    """Write pages and files below `folder`; remove what else is there."""
    wanted = {f"{place}.md": text.encode() for place, text in site.pages.items()}
    wanted |= {place: path.read_bytes() for place, path in site.files.items()}
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
