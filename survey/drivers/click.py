"""click: commands run by its own test runner, and without it."""

import click
from click.testing import CliRunner

from survey.drivers.support import fails

_RUNNER = CliRunner()


def _refuse(*_: object) -> object:
    raise ValueError("refused")


def _check(_context: object, _parameter: object, value: str) -> str:
    if value == "bad":
        raise click.BadParameter("refused")
    return value


@click.group()
@click.option("--verbose", is_flag=True)
@click.pass_context
def _main(context: click.Context, verbose: bool) -> None:  # noqa: FBT001
    context.obj = verbose


@_main.command("work")
@click.argument("number", type=int)
@click.option("--kind", type=click.Choice(["a", "b"]), default="a")
@click.option("--file", type=click.Path(exists=True))
@click.option("--name", callback=_check, default="x")
def _work(number: int, kind: str, file: str, name: str) -> None:
    click.echo(f"{number} {kind} {file} {name}")


@_main.command("fails")
def _fails() -> None:
    _refuse()


@_main.command("fails-usefully")
def _fails_usefully() -> None:
    raise click.ClickException("refused")


@_main.command("aborts")
def _aborts() -> None:
    raise click.Abort


@_main.command("exits")
def _exits() -> None:
    raise SystemExit(3)


@_main.command("context-exits")
@click.pass_context
def _context_exits(context: click.Context) -> None:
    context.exit(3)


@_main.command("asks")
@click.confirmation_option(prompt="sure?")
def _asks() -> None:
    pass


@_main.command("reads")
@click.argument("file", type=click.File())
def _reads(file: object) -> None:
    click.echo(str(file))


def _run(*arguments: str) -> None:
    _RUNNER.invoke(_main, arguments)


def _call(*arguments: str) -> None:
    _main.main(list(arguments), standalone_mode=False)


def work() -> None:
    _run("work", "3", "--kind", "b")


def work_without_runner() -> None:
    _call("work", "3")


def show_help() -> None:
    _run("work", "--help")


def ask() -> None:
    _RUNNER.invoke(_main, ["asks"], input="y\n")


def new_command() -> None:
    click.command()(click.option("--x")(_refuse))


def isolated() -> None:
    with _RUNNER.isolated_filesystem():
        pass


def missing_argument() -> None:
    _run("work")


def missing_argument_without_runner() -> None:
    fails(click.UsageError, lambda: _call("work"))


def wrong_number() -> None:
    _run("work", "x")


def wrong_number_without_runner() -> None:
    fails(click.BadParameter, lambda: _call("work", "x"))


def wrong_choice() -> None:
    _run("work", "3", "--kind", "c")


def missing_path() -> None:
    _run("work", "3", "--file", "/no/such/file")


def refused_by_a_callback() -> None:
    _run("work", "3", "--name", "bad")


def missing_file() -> None:
    _run("reads", "/no/such/file")


def no_such_option() -> None:
    _run("work", "3", "--no-such")


def no_such_command() -> None:
    _run("no-such")


def failing() -> None:
    _run("fails")


def failing_without_runner() -> None:
    fails(ValueError, lambda: _call("fails"))


def failing_usefully() -> None:
    _run("fails-usefully")


def aborted() -> None:
    _run("aborts")


def exited() -> None:
    _run("exits")


def exited_by_context() -> None:
    _run("context-exits")


def answered_no() -> None:
    _RUNNER.invoke(_main, ["asks"], input="n\n")


def no_answer() -> None:
    _RUNNER.invoke(_main, ["asks"], input="")


ORDINARY = [work, work_without_runner, show_help, ask, new_command, isolated]
ERRORS = [
    missing_argument,
    missing_argument_without_runner,
    wrong_number,
    wrong_number_without_runner,
    wrong_choice,
    missing_path,
    refused_by_a_callback,
    missing_file,
    no_such_option,
    no_such_command,
    failing,
    failing_without_runner,
    failing_usefully,
    aborted,
    exited,
    exited_by_context,
    answered_no,
    no_answer,
]
