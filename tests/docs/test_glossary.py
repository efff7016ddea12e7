"""The glossary has words that other pages use, each once."""

import re

from tests.docs.pages import PAGES, ROOT

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


def words() -> list[str]:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return [word for row in rows if row != "word" for word in row.split(", ")]


def test_each_word_stands_once() -> None:
    assert len(words()) == len(set(words())) > 20


def test_other_pages_use_each_word() -> None:
    text = " ".join(page.read_text("utf-8") for page in PAGES if page != GLOSSARY).lower()
    text = re.sub(r"\s+", " ", text)
    unused = [w for w in words() if not re.search(rf"(?<![\w-]){re.escape(w.lower())}", text)]
    assert unused == []
