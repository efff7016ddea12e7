"""The doctor's report as text: verdict first, nothing that moves the cursor, 100 columns."""

# ruff: noqa: ANN401 (JSON)
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus import memory
from cpythonplus._base.reading import visible
from cpythonplus._base.text import tables
from cpythonplus._doctor.report.page import page
from cpythonplus._doctor.report.text import part_text, report_text
from cpythonplus._doctor.report.verdict import statements
from tests.doctor import examinations

pytestmark = pytest.mark.any_version

WIDTH = 100
PARTS = [name for name in examinations.everything() if name != "target"]


def verdict(examination: dict[str, Any]) -> list[str]:
    return [statement.sentence for statement in statements(examination)]


def test_the_verdict_comes_first_and_says_what_to_do() -> None:
    text = report_text(examinations.everything())
    first, second, third = re.findall(r"^- (.*)$", text, re.MULTILINE)[:3]
    assert first.startswith("The process had 574 MiB of resident memory at the end; when it was")
    assert second.startswith(
        "Its heap has 3,240,000 objects of 618 MiB; most is shop.models.Class0"
    )
    assert third.startswith(
        "190 MiB is free in 17 of pymalloc's 40 arenas, but 3,811 blocks are in use there, mainly"
    )
    assert "  -> run it under another allocator." in text
    assert "     cpythonplus run --malloc jemalloc app.py" in text
    assert text.index("- The process") < text.index("Resident memory\n---")
    assert text.startswith("pid 4711, gunicorn: worker [shop.wsgi], Python 3.13.0, ")


def test_a_class_counts_with_its_dicts_and_beside_built_in_types() -> None:
    owners = [("str", 9, 5 << 20), ("dict of shop.A", 3, 3 << 20), ("shop.A", 4, 1 << 20)]
    owners.append(("json.B", 7, (7 << 20) // 2))
    rows = [{"name": name, "objects": n, "size_bytes": b} for name, n, b in owners]
    census = {"objects": 23, "size_bytes": 13 << 20, "by_owner": rows}
    assert verdict({"census": census})[0].endswith(
        "; most is str (9 objects, 5 MiB), and of the classes of the program and its libraries"
        " shop.A (4 objects, 4 MiB)."
    )


@pytest.mark.parametrize(
    ("name", "more", "remedy", "command"),
    [
        ("shop.A", {}, "memory.census().referrers('shop.A') shows what refers to them.", ""),
        (
            "dict of shop.A",
            {"target": {"pid": 7}},
            "To see what refers to shop.A objects:",
            "cpythonplus doctor referrers 7 shop.A",
        ),
        ("shop.A", {"target": {"pid": 7}, "cycles": {}}, None, ""),
        ("str", {"target": {"pid": 7}}, "", ""),
        ("shop.f.<locals>.$(reboot)", {"target": {"pid": 7}}, "", ""),
    ],
)
def test_who_refers_to_what_is_held_can_be_asked(
    name: str, more: dict[str, Any], remedy: str | None, command: str
) -> None:
    rows = [{"name": name, "objects": 3, "size_bytes": 5}]
    held = statements({"census": {"objects": 3, "size_bytes": 5, "by_owner": rows}, **more})[0]
    assert remedy is None or held.remedy == remedy
    assert held.command == command


def test_the_largest_findings_are_told() -> None:
    found = statements(examinations.everything())
    assert 3 <= len(found) <= 6
    sizes = [statement.size_bytes for statement in found[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size > 40 << 20 for size in sizes)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (
            "cycles",
            "5 lines leave 72.2 MiB of cyclic garbage to the collector; the largest is /srv/",
        ),
        ("exceptions", "310 exceptions that are still held keep 44 MiB"),
        ("caches", "The cache lru_cache of shop.price has 128 entries of 20 MiB."),
        (
            "key_sharing",
            "400,000 instances of shop.Order take 31 MiB more than they need: vars() was",
        ),
        (
            "key_sharing",
            "module shop.SEEN has room for 1,398,101 entries and 12 in it, which takes 42",
        ),
        ("samples", "While it was watched for 58 s, its memory grew by 174 MiB; dict of"),
    ],
)
def test_each_part_has_its_sentence(part: str, said: str) -> None:
    sentences = verdict({part: examinations.everything()[part]})
    assert any(sentence.startswith(said) for sentence in sentences), sentences


def test_the_largest_cause_is_named_wherever_it_stands() -> None:
    cycles = examinations.everything()["cycles"]
    cycles["cycles"].reverse()
    (sentence, *_) = verdict({"cycles": cycles})
    assert "`last` keeps OSError" in sentence


def test_what_is_small_is_not_told() -> None:
    resident = examinations.everything()["resident"]
    resident["verdict"][0] |= {"size_bytes": 500 << 10, "frees_bytes": 1000}
    sentences = verdict({"resident": resident})
    assert sentences[1:] == ["Nothing stands out as worth acting on."]


def test_what_advice_is_about_counts_where_nothing_comes_back_at_once() -> None:
    whole = examinations.everything()
    advice = whole["resident"]["verdict"]
    advice.insert(0, advice[0] | {"size_bytes": 131 << 19, "frees_bytes": None})
    sentences = verdict({"resident": whole["resident"], "cycles": whole["cycles"]})
    assert [sentence[:8] for sentence in sentences[1:4]] == ["190 MiB ", "5 lines ", "65.5 MiB"]


def test_where_there_is_nothing_to_do_that_is_said() -> None:
    calm = {"kind": "files", "size_bytes": 7 << 20, "remedy": "Nothing to do", "command": ""}
    resident = examinations.everything()["resident"]
    resident["verdict"].append(calm)
    assert "7 MiB is pages of files." not in verdict({"resident": resident})
    resident["verdict"] = [calm]
    nothing = "Nothing stands out as worth acting on."
    assert verdict({"resident": resident})[1:] == [nothing, "7 MiB is pages of files."]


def test_what_was_watched_longer_than_looked_at_closely() -> None:
    whole = examinations.everything()
    parts = {"resident": whole["resident"], "samples": whole["samples"]}
    assert verdict(parts)[0].startswith(
        "The process had 574 MiB of resident memory at the end; when it was last looked at closely,"
        " 900 MiB: 620 MiB live"
    )


def test_it_does_not_send_to_itself() -> None:
    whole = examinations.everything()
    advice = whole["resident"]["verdict"][0]
    advice |= {"kind": "in_use", "size_bytes": 800 << 20}
    advice["command"] = "cpythonplus doctor run SCRIPT"
    held = "800 MiB is in use: it is not returned because something holds it."
    told = verdict({"resident": whole["resident"]})
    assert held in told
    told = verdict({"resident": whole["resident"], "census": whole["census"]})
    assert held not in told


def test_advice_of_another_version_is_told() -> None:
    resident = examinations.everything()["resident"]
    resident["verdict"][0] |= {"kind": "odd\x07", "command": "x"}
    assert verdict({"resident": resident})[1:] == ["190 MiB: odd\\x07."]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_and_a_part_that_is_missing(part: str) -> None:
    whole = examinations.everything()
    assert report_text({part: whole[part]}).count("\n---") == 1
    del whole[part]
    assert report_text(whole).count("\n---") == len(PARTS) - 1


def test_a_part_that_was_refused_says_why() -> None:
    text = report_text({"census": {"error": "it is\nbusy"}})
    assert "not examined: it is\\nbusy" in text
    assert report_text({"census": None}).endswith("not examined: no answer\n")
    assert report_text({}) == "nothing was examined\n"


def test_tables_have_so_many_rows() -> None:
    whole = examinations.everything()
    assert "  and 77 more\n" in report_text({"census": whole["census"]}, top=3)
    assert "dict of redis.client.Class3\n" not in report_text(whole, top=3)
    assert "dict of redis.client.Class3\n" in report_text(whole, top=4)


def test_a_type_may_have_any_name() -> None:
    found = {"type": "a:size|b=c", "rows": [{"name": "x:y|z", "references": 7}], "more": 2}
    assert part_text("referrers", found) == (
        "to objects of a:size|b=c\n\n  references  from\n           7  x:y|z\n  and 2 more\n"
    )


def test_lines_fit_whatever_the_names_are() -> None:
    def longer(text: str) -> str:
        return f"{text}.{'part.' * 40}\u4e2d\u6587{'x' * 300}"

    for examination in (
        examinations.everything(),
        examinations.changed(examinations.everything(), longer),
        examinations.hostile(),
    ):
        commands = {row["command"] for row in examination["resident"]["verdict"]}
        commands |= {row["clear"] for row in examination["caches"]["rows"]}
        shown = {visible(command) for command in commands}
        lines = [x for x in report_text(examination).split("\n") if x.strip() not in shown]
        assert len(lines) > 100
        assert [line for line in lines if len(line) > WIDTH] == []


def test_every_character_is_visible() -> None:
    text = report_text(examinations.hostile())
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert "\\x1b[2J" in text
    assert "\\ud800" in text
    assert "\\u202e" in text
    text.encode("utf-8")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(sorted({"by_type", "name", "parts", "cycles", "cause", "hoards"})),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                sorted(
                    {
                        *PARTS,
                        *examinations.everything()["census"],
                        *examinations.everything()["resident"],
                        *examinations.everything()["cycles"],
                        *("name", "objects", "cause", "variable", "t_s", "count", "kind", "what"),
                    }
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from(["target", *PARTS]), JSON, max_size=4))
def test_whatever_a_process_answers_is_shown(examination: dict[str, Any]) -> None:
    """A target of another version, or one that does not mean well."""
    assert report_text(examination)
    assert page(examination).endswith("</html>\n")


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_field_may_be_something_else(data: st.DataObject) -> None:
    examination = examinations.everything()
    place: Any = examination[data.draw(st.sampled_from(PARTS))]
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else [0]))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    assert report_text(examination)
    assert page(examination).endswith("</html>\n")


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (12.5e6, tables.Kind.TIME, "12.5 ms"),
        (1_500, tables.Kind.TIME, "1.5 us"),
        (250e9, tables.Kind.TIME, "250 s"),
        (7, tables.Kind.TIME, "7 ns"),
        (1 << 20, tables.Kind.SIZE, "1 MiB"),
        (0.1234, tables.Kind.SHARE, "12.3 %"),
        (1_234_567, tables.Kind.COUNT, "1,234,567"),
        (0.5, tables.Kind.COUNT, "0.5"),
        ("text", tables.Kind.COUNT, "text"),
    ],
)
def test_numbers_are_shown_in_their_unit(value: Any, kind: tables.Kind, shown: str) -> None:
    assert tables.shown(value, kind) == shown


def test_what_is_left_out_is_said() -> None:
    whole = examinations.everything()
    for part, said in (("caches", "not\x07 counted"), ("key_sharing", "keys are not seen")):
        whole[part]["left_out"] = [said]
    whole["census"]["left_out"] = "shared keys"
    whole["resident"]["arenas"]["unknown"] = "another allocator"
    lines = report_text(whole).split("\n")
    assert "not\\x07 counted" in lines
    assert "keys are not seen" in lines
    assert "not included in these numbers: shared keys" in lines
    assert "the arenas could not be read: another allocator" in lines
    assert "the heaps of threads were busy" in lines


def test_counters_of_any_shape() -> None:
    counters = {
        "active": True,
        "zero": 0,
        "batch": {"holds": {"p99_ns": 52_000, "count": 1_234_567}},
        "threads": [{"ident": 140_000_000_000, "name": "Main", "wait_ns": 5, "is_daemon": False}],
    }
    text = report_text({"workers": counters})
    lines = [line.strip() for line in text.split("\n")]
    assert "batch: holds: p99    52 us" in lines
    assert "batch: holds: count  1,234,567" in lines
    assert "140000000000  Main  5 ns  no" in lines
    assert "zero" not in text
    assert report_text({"workers": {"workers": []}}).endswith("nothing found\n")


def test_what_the_scheduler_counted() -> None:
    times = {"count": 7, "total_ns": 4_200_000, "p99_ns": 52_000}
    thread = {"native_id": 5, "name": "Main\x07", "thread_class": "batch", "cpu_ns": 3_000}
    found = {"active": True, "switches": 1_842, "batch": {"holds": times}, "threads": [thread]}
    lines = [" ".join(line.split()) for line in report_text({"gil": found}).split("\n")]
    assert "scheduled; switches 1,842" in lines
    assert "batch: holds 7 4.2 ms 0 ns 52 us 0 ns" in lines
    assert "Main\\x07 5 batch 3 us 0 ns 0 ns 0 0" in lines
    assert "no longer scheduled; switches 3" in report_text(
        {"gil": {"active": False, "switches": 3}}
    )
    assert report_text({"gil": {"active": False, "switches": 0}}).endswith(
        "not scheduled: only `cpythonplus run` without --no-gil schedules it\n"
    )


def test_notes_stand_beside_a_row_as_far_as_they_fit() -> None:
    resident = examinations.everything()["resident"]
    resident["parts"][3]["files"] = [{"name": "word " * 50, "size_bytes": 5}]
    lines = report_text({"resident": resident}).split("\n")
    (cut,) = (line for line in lines if " code  " in line)
    assert cut.endswith("word...")
    assert 90 < len(cut) <= WIDTH
    noted = r"free in Python's arenas +free in arenas that still have a block in use$"
    assert any(re.search(noted, line) for line in lines)


@pytest.mark.needs_gil
def test_what_the_rooms_functions_return_is_understood() -> None:
    """The names of the fields are theirs: what is renamed there would be missing here."""
    told = {
        "census": ("By owner:", "By type:", "By module:", "By size:"),
        "resident": ("What it consists of:",),
        "caches": ("What can be cleared:", "What stays:"),
        "key_sharing": ("Larger than what is in them:",),
    }
    large = dict.fromkeys(range(100_000))
    for n in range(99_990):
        del large[n]
    examination = {name: getattr(memory, name)().as_json() for name in told}
    with memory.cycles.watch() as watch:
        made: list[list[object]] = [[], []]
        made[0].append(made)
        del made
    examination["cycles"] = watch.report.as_json()
    text = report_text(examination)
    assert [title for titles in told.values() for title in titles if title not in text] == []
    assert "keeps list" in text or "list[" in text
    assert "not examined" not in text
    assert len(large) == 10
