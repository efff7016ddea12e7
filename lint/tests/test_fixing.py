"""What --fix does: the cycle is gone, all else is as it was, and nothing is left to fix."""

import pytest

from cpythonplus_lint import Selection, fix_text
from lint.tests.support import EXCEPTIONS, case, outcomes

ALL = Selection(select=("ALL",))


@pytest.mark.parametrize(
    ("name", "least"),
    [("exceptions", 40), ("closures", 3), *((name, 1) for name in EXCEPTIONS[1:])],
)
def test_fixed_functions_do_the_same_and_leave_nothing(name: str, least: int) -> None:
    text = case(name)
    new, left, count = fix_text(text, "cases.py", Selection())
    assert count >= least
    assert [hit for hit in left if hit.fix] == []
    before, after = outcomes(text), outcomes(new)
    assert {name: one.seen for name, one in after.items()} == {
        name: one.seen for name, one in before.items()
    }
    still = {function_at(new, one.row) for one in left}
    assert {name for name, one in after.items() if one.leaves_garbage} <= still | NOT_SEEN


NOT_SEEN = {  # they call a method that is hit
    "bad_exit",
    "bad_raise_attribute",
    "bad_raise_attribute_by_name",
    "bad_raise_attribute_one_of_them",
    "bad_self",
}


def function_at(text: str, row: int) -> str:
    """The function of the file's margin that a line is in."""
    lines = text.splitlines()[:row]
    starts = [line for line in lines if line.startswith(("def ", "async def ", "class "))]
    return starts[-1].partition("(")[0].split()[-1]


def fixed(text: str) -> str:
    return fix_text(text, "x.py", ALL)[0]


RETRY = """\
def fetch(call):
    last = None
    for _ in range(3):
        try:
            call()
        except OSError as error:
            last = error
"""


def test_the_end_of_a_retry_loop() -> None:
    assert fixed(f"{RETRY}    raise last  # at last\n") == (
        f"{RETRY}    try:\n        raise last  # at last\n    finally:\n        del last\n"
    )


def test_what_may_be_unbound_is_set_to_none() -> None:
    text = "def f():\n\ttry: g()\n\texcept E as e: x = e\n\treturn 1\n"
    assert fixed(text) == ("def f():\n\ttry: g()\n\texcept E as e: x = e\n\tx = None\n\treturn 1\n")


def test_a_line_is_enough_where_nothing_can_raise_in_between() -> None:
    text = "def f():\n    try: g()\n    except E as e:\n        x = e  # why\n    return 1"
    assert fixed(text) == text.replace("why\n", "why\n        del x\n")
    text = "def f():\n    x = None\n    try: g()\n    except E as e: x = e\n    y = x\n"
    new = (
        "def f():\n    x = None\n    try: g()\n    except E as e: x = e\n    y = x\n    del x, y\n"
    )
    assert fixed(text) == new
    # print() may raise, and something would be left.
    text = "def f():\n    x = None\n    try: g()\n    except E as e: x = e\n    print(x)\n"
    new = text.replace(
        "    print(x)\n", "    try:\n        print(x)\n    finally:\n        del x\n"
    )
    assert fixed(text) == new


def test_a_frame_that_is_kept() -> None:
    text = "def f():\n    frame = sys._getframe()\n    return frame.f_lineno\n"
    assert fixed(text) == (
        "def f():\n    frame = sys._getframe()\n"
        "    try:\n        return frame.f_lineno\n    finally:\n        del frame\n"
    )


def test_a_loop_is_not_moved() -> None:
    text = RETRY.replace("            call()", "            return call()") + "    raise last\n"
    new, left, count = fix_text(text, "x.py", ALL)
    assert (new, count) == (text, 0)
    assert [hit.code for hit in left] == ["CYC101"]


def test_strings_of_several_lines_keep_their_text() -> None:
    text = """\
def f():
    try:
        g()
    except ValueError as e:
        x = e
    print('''a
    b''', f'''c
    {x}
    d''')
"""
    new = fixed(text)
    assert "    try:\n        print('''a\n    b''', f'''c\n    {x}\n    d''')\n" in new


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    try: g()\n    except E as e: x = e\n    return lambda: x\n",
        "def f():\n    try: g()\n    except E as e: x = e\n    return (x for _ in y)\n",
        "def f():\n    try: g()\n    except E as e: x = e\n    return locals()\n",
        "def f(self):\n    try: g()\n    except E as e: self.x = e\n",
        "def f():\n    def w(n): return w(n)\n    return w\n",
        "def f():\n    def w(n): return w(n)\n    return map(w, x)\n",
        "def f():\n    def w(n): yield w(n)\n    return w(1)\n",
        "def f():\n    def w(n): return lambda: w(n)\n    return w(1)\n",
        "def f():\n    def w(n): return w(n)\n    return (w(n) for n in x)\n",
        "def f():\n    def w(n): return [lambda: w(m) for m in n]\n    return w(x)\n",
        "def f():\n    try: g()\n    except E as e: x = e\n    return [lambda: x for _ in y]\n",
        "def f():\n    try: g()\n    except E as e: x = e  # noqa\n    return 1\n",
        "def f():\n    e = E1(); raise e\n",
        "def f(): e = E1(); raise e\n",
    ],
)
def test_what_could_change_something_is_left_alone(text: str) -> None:
    assert fixed(text) == text


def test_what_nobody_reads_is_not_assigned() -> None:
    text = """\
def f():
    try: g()
    except ValueError:
        kind, value, trace = sys.exc_info()  # why
        return kind
def h():
    try: g()
    except ValueError:
        kind, value, trace = sys.exc_info()
"""
    assert fixed(text) == text.replace(
        "kind, value, trace = sys.exc_info()  # why", "kind = sys.exc_info()[0]  # why"
    ).replace("kind, value, trace = sys.exc_info()", "pass")


@pytest.mark.parametrize("use", ["del value, trace", "value += 1", "del kind"])
def test_what_somebody_deletes_is_assigned(use: str) -> None:
    new = fixed(
        "def f(early):\n    try: g()\n    except ValueError:\n"
        "        kind, value, trace = sys.exc_info()\n"
        f"        if early: return 1\n        {use}\n"
    )
    if use != "del kind":
        assert "        kind, value, trace = sys.exc_info()\n" in new
    else:
        assert "        kind = sys.exc_info()[0]\n" in new


def test_only_what_is_asked_for_and_not_silenced_is_fixed() -> None:
    text = """\
def f(error: ValueError):
    x = y = None
    try: g()
    except ValueError as e: x = e  # noqa
    try: g()
    except ValueError as e: y = e
    raise error
"""
    assert "finally:\n        del error, y\n" in fixed(text)
    some = fix_text(text, "x.py", Selection(select=("CYC105",)))[0]
    assert "finally:\n        del error\n" in some


def test_line_ends_stay() -> None:
    text = "def f():\r\n    e = ErrorOf()\r\n    raise e"
    assert fixed(text) == (
        "def f():\r\n    e = ErrorOf()\r\n"
        "    try:\r\n        raise e\r\n    finally:\r\n        del e\r\n"
    )
