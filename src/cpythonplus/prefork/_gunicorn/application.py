"""`cpythonplus serve`: gunicorn with settings of ours beside its own.

A setting that subclasses gunicorn's works on the command line, in GUNICORN_CMD_ARGS and as a name
in a configuration file.  Importing this module adds them to those that gunicorn knows.
"""

# A configuration file can hold any object.
# ruff: noqa: ANN401

from __future__ import annotations

import argparse
import os
import sys
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import gunicorn
from gunicorn import config, util
from gunicorn.app.wsgiapp import WSGIApplication
from gunicorn.arbiter import Arbiter

from cpythonplus.prefork._gunicorn.master import install
from cpythonplus.prefork._gunicorn.service import SERVICE
from cpythonplus.prefork._options import OPTIONS, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Others = Sequence[tuple[str, str, str]]

PROG = "cpythonplus serve"
SECTION = "cpythonplus"
_WRONG_USE_STATUS = 2
_FAILED_STATUS = 1

USAGE = "%(prog)s APP [options]"
INTRODUCTION = """\
Serve the WSGI or ASGI application APP (module:callable) with gunicorn, in workers that share
memory. All options of gunicorn, GUNICORN_CMD_ARGS and configuration files work as usual."""
GROUP = """\
The application is loaded once, by the master, before the workers are forked (gunicorn's --preload):
otherwise there is nothing to share. SIGHUP therefore starts new workers with a new configuration,
but with the same code. To load new code, restart, or use SIGUSR2; or serve with --refork, where
SIGHUP loads it. With --reload, for development,
and with preload_app = False in a configuration file, each worker loads the application, and no
memory is shared."""


# ---- settings -----------------------------------------------------------------------------------


def _typed(check: Callable[[object], object]) -> Callable[[str], str]:
    """Make argparse show the message of `check` for a wrong value."""

    def typed(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    return typed


def _add_option(setting: Any, parser: Any) -> None:
    """Add a prefork option; gunicorn's method would show the default, which is always None."""
    kind = {}
    if setting.meta:
        kind = {"metavar": setting.meta, "type": _typed(setting.validator)}
    parser.add_argument(
        *setting.cli,
        dest=setting.name,
        action=setting.action,
        default=None,
        help=setting.short,
        **kind,
    )


def _action(option: Option, *, repeated: bool) -> str:
    if option.shape:
        return "append" if repeated else "store"
    return "store_false" if option.is_on else "store_true"


def _add_setting(option: Option) -> None:
    """Make an option known to gunicorn."""
    repeated = isinstance(option.default, tuple)

    def check(value: Any) -> object:
        return None if value is None else option.read(value)

    fields = {
        "name": option.setting,
        "section": SECTION,
        "cli": [option.word],
        "action": _action(option, repeated=repeated),
        "meta": option.shape,
        "validator": check,
        "default": None,
        "desc": f"Do not {option.text[0].lower()}{option.text[1:]}"
        if option.is_on
        else option.text,
        "add_option": _add_option,
    }
    # The creation of the class registers it with gunicorn.
    make: Any = type(config.Setting)
    make(option.setting.title().replace("_", ""), (config.Setting,), fields)


for _option in OPTIONS:
    _add_setting(_option)


# ---- the command line ---------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser for given words, whose errors are one line."""

    words: Sequence[str] = ()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args`; without them `words`, instead of argparse's default, sys.argv."""
        return super().parse_args(self.words if args is None else args, namespace)

    def error(self, message: str) -> NoReturn:
        _end(f"{message}; see {PROG} --help", _WRONG_USE_STATUS)


class _ElsewhereError(argparse.Action):
    """An option that has been read, and taken off the command line, before gunicorn started."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Say why the option was not expected here."""
        parser.error(f"{self.option_strings[0]} counts on the command line alone, written out")


class _Config(config.Config):
    """gunicorn's configuration, with our options in a group of their own."""

    words: Sequence[str] = ()
    others: Others = ()

    def __init__(self, usage: str | None, prog: str | None) -> None:
        """Begin with gunicorn's defaults."""
        super().__init__(usage, prog=prog)
        self.given: set[str] = set()
        """The names of the settings that were given."""
        self.changed: list[str] = []
        """The names of the settings whose default differs from gunicorn's."""

    def set(self, name: str, value: object) -> None:
        """Take a value of the command line, the environment or a file."""
        super().set(name, value)
        self.given.add(name)

    def parser(self) -> argparse.ArgumentParser:
        """Return the parser for the command line and GUNICORN_CMD_ARGS."""
        parser = _Parser(usage=USAGE, prog=PROG, description=INTRODUCTION, allow_abbrev=True)
        parser.words = self.words
        parser.add_argument("args", nargs="*", help=argparse.SUPPRESS)
        version = f"{PROG} (gunicorn {gunicorn.__version__})"
        parser.add_argument("-v", "--version", action="version", version=version)
        ours = parser.add_argument_group("cpythonplus", GROUP)
        for flag, metavar, text in self.others:
            kind: dict[str, Any] = {"metavar": metavar} if metavar else {"nargs": 0}
            ours.add_argument(
                flag, action=_ElsewhereError, default=argparse.SUPPRESS, help=text, **kind
            )
        theirs = parser.add_argument_group("gunicorn")
        for setting in sorted(self.settings.values(), key=lambda setting: setting.order):
            group: Any = ours if setting.section == SECTION else theirs
            setting.add_option(group)
        return parser


class Application(WSGIApplication):
    """gunicorn's application, preloaded, with our hooks beside the user's."""

    def __init__(self, words: Sequence[str], others: Others = ()) -> None:
        """Read the configuration.  words, others: see `serve`."""
        self._words = words
        self._others = others
        super().__init__(USAGE, prog=PROG)

    def load_default_config(self) -> None:
        """Begin with gunicorn's defaults and ours."""
        SERVICE.options = SERVICE.defaults
        self.cfg = _Config(self.usage, prog=self.prog)
        self.cfg.words = self._words
        self.cfg.others = self._others

    def do_load_config(self) -> None:
        """Load the configuration; an error is printed in one line, with gunicorn's status."""
        try:
            self.load_default_config()
            self.load_config()
            if hasattr(self.cfg, "validate"):
                self.cfg.validate()
        except Exception as error:  # noqa: BLE001  # as gunicorn: any error of them
            _end(str(error) or type(error).__name__, _FAILED_STATUS)
        self._choose()

    def _choose(self) -> None:
        """Put our settings and their consequences into effect."""
        settings = self.cfg.settings
        given = {each.name: settings[each.setting].get() for each in OPTIONS}
        chosen = {name: value for name, value in given.items() if value is not None}
        SERVICE.options = replace(SERVICE.options, **chosen)
        SERVICE.patch_threads()
        if self.cfg.reload:
            settings["preload_app"].value = False
        else:
            self._default("preload_app")
        if not self.cfg.preload_app:
            why = "--reload" if self.cfg.reload else "preload_app is off"
            _say(f"{why}: the application is loaded in each worker, and no memory is shared")
        # The thread of the control socket runs in the master while it forks, and can hold a lock
        # then.
        self._default("control_socket_disable", unless="control_socket")

    def _default(self, name: str, *, unless: str = "") -> None:
        """Switch a setting of gunicorn on, if it exists and neither it nor `unless` was given."""
        if name in self.cfg.settings and not self.cfg.given & {name, unless}:
            self.cfg.settings[name].value = True
            self.cfg.changed.append(name)

    def load(self) -> Any:
        """Return the application; one that cannot be loaded ends the start with one line."""
        try:
            return super().load()
        except Exception as error:  # any error of its code
            if self.cfg.reload and isinstance(error, SyntaxError):
                raise  # gunicorn shows it to the clients, and waits for the next change
            if self.cfg.loglevel.lower() == "debug":
                traceback.print_exc()
            reason = _told(error)
            _end(
                f"the application {self.app_uri!r} cannot be loaded: {reason}",
                Arbiter.APP_LOAD_ERROR,
            )


def serve(words: Sequence[str], others: Others = ()) -> NoReturn:
    """Serve as the command line `words` says until the server is stopped; SystemExit ends it.

    words: those behind `serve`, without the options that were read before. others: those options,
    for --help: the option, the name of its value (empty: a switch), its effect.
    """
    install()
    Application(words, others).run()
    sys.exit(0)


def _told(error: Exception) -> str:
    """Return the error in one line, with its place in the application."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = os.path.dirname(util.__file__)  # noqa: PTH120
    own = [f for f in frames if not f.filename.startswith((outside, "<frozen", __file__))]
    place = ""
    if own and own[-1].filename != frames[0].filename and "importlib" not in own[-1].filename:
        place = f" ({own[-1].filename}, line {own[-1].lineno}; --log-level debug shows more)"
    return f"{type(error).__name__}: {error}{place}"


def _say(message: str) -> None:
    sys.stderr.write(f"{PROG}: {' '.join(message.split())}\n")
    sys.stderr.flush()


def _end(message: str, status: int) -> NoReturn:
    _say(message)
    sys.exit(status)
