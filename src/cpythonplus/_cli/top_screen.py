"""The screen of `cpythonplus top`: draws what was seen, and obeys keys."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cpythonplus._base.text.visible import visible
from cpythonplus._cli.screens import ended_by_signals, read_keys, single_keys
from cpythonplus._doctor.top import tables

if TYPE_CHECKING:
    from cpythonplus._doctor.top.looking import ProcessRow, ThreadRow, Top

_HELP = "q quit  s sort  r reverse  / filter  Enter stack  a tasks  g GIL  space hold  Esc back"
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -20, "page down": 20}
_ACTIONS = {
    "s": "_next_sort",
    "r": "_turn",
    "/": "_begin_filter",
    " ": "_hold",
    "a": "_show_tasks",
    "g": "_show_gil",
    "enter": "_show_stack",
    "escape": "_go_back",
}
"""The methods of the screen that keys call."""
_STYLES = {"has the GIL": "green", "awaits the GIL": "yellow", "Lock of": "red"}


class Screen:
    """The picture, and the state that keys change."""

    def __init__(self, top: Top, interval_s: float) -> None:
        """Show `top`, drawn anew at each interval and at each key."""
        self._top = top
        self._interval_s = interval_s
        self._view = "threads"
        self._sort = 0
        self._reverse = False
        self._filter = ""
        self._typing = False
        self._held: list[ProcessRow] | None = None
        self._chosen: tuple[int, int] | None = None
        self._of_stack: ThreadRow | None = None
        self._threads: list[ThreadRow] = []
        self._first_line = 0

    def show(self) -> int:
        """Show the processes until `q`, Ctrl-C or the end of the first one; returns the status."""
        console = Console(highlight=False)
        rows = self._top.rows()
        with ended_by_signals() as again:
            try:
                with single_keys(), Live(console=console, auto_refresh=False, screen=True) as live:
                    while not self._top.first.is_over:
                        picture = self.picture(rows, console.width, console.height)
                        live.update(picture, refresh=True)
                        keys = read_keys(self._interval_s)
                        if not all(map(self.obey, keys)):
                            break
                        if not keys:  # a key shows at once, and counts nothing anew
                            self._top.find_children()
                            rows = self._held or self._top.rows()
            finally:
                self._leave_view()
        for signum in again:
            signal.raise_signal(signum)
        if self._top.first.is_over:
            print(visible(self._top.first.problem))
        return 0

    # ---- keys -----------------------------------------------------------------------------------

    def obey(self, key: str) -> bool:
        """Change what is shown; False: quit."""
        if self._typing:
            self._type(key)
        elif key in _STEPS:
            self._move(_STEPS[key])
        elif key in _ACTIONS:
            getattr(self, _ACTIONS[key])()
        return self._typing or key not in ("q", "Q")

    def _next_sort(self) -> None:
        self._sort = (self._sort + 1) % len(tables.SORTS)

    def _turn(self) -> None:
        self._reverse = not self._reverse

    def _begin_filter(self) -> None:
        self._typing, self._filter = True, ""

    def _hold(self) -> None:
        self._held = None if self._held else self._top.rows()

    def _show_stack(self) -> None:
        if self._view == "threads":
            self._of_stack = self._row()
        if self._of_stack is not None:
            self._go("stack")

    def _show_tasks(self) -> None:
        self._go("tasks")

    def _show_gil(self) -> None:
        self._go("GIL")

    def _go_back(self) -> None:
        if self._view == "threads":
            self._filter = ""
        self._go("threads")

    def _type(self, key: str) -> None:
        if key in ("enter", "escape"):
            self._typing = False
            self._filter = "" if key == "escape" else self._filter
        elif key == "backspace":
            self._filter = self._filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self._filter += key

    def _move(self, step: int) -> None:
        if self._view != "threads":
            self._first_line = max(self._first_line + step, 0)
            return
        now = self._row()
        if now is not None:
            at = min(max(self._threads.index(now) + step, 0), len(self._threads) - 1)
            self._chosen = _key(self._threads[at])

    def _row(self) -> ThreadRow | None:
        """Return the chosen thread; the first one if there is none."""
        chosen = next((row for row in self._threads if _key(row) == self._chosen), None)
        return chosen or next(iter(self._threads), None)

    def _go(self, view: str) -> None:
        if view == self._view:
            return
        self._leave_view()
        self._view, self._first_line = view, 0
        if view == "tasks":
            self._top.want_tasks()
        elif view == "GIL":
            self._top.want("gil_profile")
        elif view == "stack" and self._of_stack is not None:
            self._top.want("stack", str(self._of_stack.ident), self._of_stack.pid)

    def _leave_view(self) -> None:
        """Ask no more for what only this view shows."""
        questions = {"tasks": ("tasks", "tasklets"), "GIL": ("gil_profile",), "stack": ("stack",)}
        for name in questions.get(self._view, ()):
            self._top.no_longer(name)
        if self._view == "GIL":
            self._top.end_profile()

    # ---- drawing --------------------------------------------------------------------------------

    def picture(self, rows: list[ProcessRow], width: int, height: int) -> Text:
        """Return the whole screen."""
        heads = tables.head_lines(rows, width)
        room = max(height - len(heads) - 2, 1)
        lines = [Text(line, style="red" if line.startswith("  !") else "bold") for line in heads]
        lines.append(Text(self._status(), style="dim"))
        if self._view == "threads":
            lines += self._thread_lines(rows, width, room)
        else:
            found = self._other_lines(width)
            self._first_line = min(self._first_line, max(len(found) - room, 0))
            title, *rest = found or [""]
            lines.append(Text(title, style="reverse"))
            lines += [Text(line) for line in rest[self._first_line :][: room - 1]]
        lines = lines[: height - 1]
        lines += [Text("")] * (height - 1 - len(lines))
        keys = Text(f"/{self._filter}_" if self._typing else _HELP, style="dim")
        keys.truncate(width)
        picture = Text("\n", no_wrap=True, overflow="crop").join([*lines, keys])
        picture.no_wrap, picture.overflow = True, "crop"
        return picture

    def _status(self) -> str:
        told = [time.strftime("%H:%M:%S"), f"view: {self._view}"]
        if self._view == "threads":
            name = [*tables.SORTS][self._sort]
            told.append(f"sorted by {name}{', reversed' if self._reverse else ''}")
        if self._filter:
            told.append(f"only {self._filter!r}")
        if self._held:
            told.append("held: space goes on")
        return "  ".join(told)

    def _thread_lines(self, rows: list[ProcessRow], width: int, room: int) -> list[Text]:
        found = [row for each in rows for row in each.threads]
        if self._filter:
            found = tables.matching(found, self._filter)
        sort = [*tables.SORTS.values()][self._sort]
        self._threads = sorted(found, key=sort, reverse=self._reverse)
        chosen = self._row()
        at = self._threads.index(chosen) if chosen else 0
        first = min(max(at - room // 2, 0), max(len(self._threads) - (room - 1), 0))
        title, *lines = tables.thread_lines(self._threads, width)
        drawn = [Text(title, style="reverse")]
        shown = self._threads[first : first + room - 1]
        for row, line in zip(shown, lines[first:], strict=False):
            style = next((s for text, s in _STYLES.items() if row.state.startswith(text)), "")
            if row == chosen:
                style = f"{style} reverse".strip()
                line = line.ljust(width)  # noqa: PLW2901
            drawn.append(Text(line, style=style))
        return drawn

    def _other_lines(self, width: int) -> list[str]:
        if self._view == "tasks":
            return tables.task_lines(self._top.tasks(), width)
        if self._view == "GIL":
            return tables.profile_lines(self._top.answers("gil_profile"), width)
        thread = self._of_stack
        answers = self._top.answers("stack")
        if thread is None or thread.pid not in answers:
            return ["..."]
        title = f"stack of {thread.name}, innermost first"
        return [title, *tables.stack_lines(answers[thread.pid], width)]


def _key(row: ThreadRow) -> tuple[int, int]:
    return row.pid, row.ident or row.native_id
