"""Help, errors and the words of the command line."""

import contextlib
import io
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus import gil
from cpythonplus._cli import features, interpreter_options, main
from tests.cli.support import (
    CONSOLE_SCRIPT,
    MODULE,
    NOTHING,
    PYTHON,
    assert_refused,
    execute,
    run,
)


@pytest.mark.parametrize("words", [[], ["help"], ["--help"], ["-h"]])
def test_help(words: list[str]) -> None:
    result = execute([*MODULE, *words])
    assert (result.status, result.stderr) == (0, b"")
    assert "cpythonplus COMMAND" in result.out
    for command in main.COMMANDS:
        assert result.out.count(f"\n  {command}  ") == 1


def test_version() -> None:
    result = execute([*MODULE, "--version"])
    assert (result.status, result.stderr) == (0, b"")
    assert result.out.startswith("cpythonplus ")
    assert ".".join(map(str, sys.version_info[:3])) in result.out


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_run_help(word: str) -> None:
    result = run("--stats", word, "script.py")
    assert (result.status, result.stderr) == (0, b"")
    for feature in features.FEATURES:
        if feature.command != "cpythonplus run":
            continue
        if feature.by_default:
            assert f" {feature.switch_off} {feature.summary} " in " ".join(result.out.split())
        for option in feature.options:
            end = "[" if option.optional else " "
            assert result.out.count(f"    {option.flag}{end}") == 1
    assert f"(slice_us={gil.Policy().slice_us}," in result.out
    parts = ("run app.py", "-m gunicorn", "--show", "--no-gil", "--stats", "--policy", "--malloc")
    found = [result.out.index(part) for part in parts]
    assert found == sorted(found)


@pytest.mark.parametrize("word", ["-?", "-u?", "-Oh"])
def test_run_help_by_the_letters_of_python(word: str) -> None:
    assert run(word, "script.py") == run("--help")


@pytest.mark.parametrize(
    "words",
    [
        ["-V"],
        ["-VV"],
        ["-V", "-V"],
        ["--version"],
        ["-uV", "does_not_exist.py"],
        ["-Vm", "does_not_exist"],
        ["-V", "-c", "print(1)"],
        ["--help-env"],
        ["--help-xoptions"],
        ["--help-all"],
    ],
    ids=" ".join,
)
def test_what_python_tells(words: list[str]) -> None:
    """The version and the like are the interpreter's, whatever else is asked for."""
    stock = execute([PYTHON, *words])
    assert stock.status == 0
    assert stock.out
    assert run(*words) == run("--stats", *words) == run("--no-gil", *words) == stock


def test_help_into_a_closed_pipe() -> None:
    command = ["/bin/sh", "-c", '"$@" | true; echo $?', "sh", *MODULE, "--help"]
    result = execute(command)
    assert (result.out, result.err) == ("0\n", "")


@pytest.mark.skipif(not CONSOLE_SCRIPT.exists(), reason="no console script installed")
def test_console_script() -> None:
    assert execute([str(CONSOLE_SCRIPT), "--version"]).stdout.startswith(b"cpythonplus ")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rum"], ["unknown command 'rum'", "did you mean run?"]),
        (["xyzzy"], ["unknown command 'xyzzy'"]),
        (["app.py"], ["unknown command 'app.py' (did you mean run app.py?)"]),
        (["--versoin"], ["unknown option", "--version?"]),
        (["a\nb"], [r"'a\nb'"]),
    ],
)
def test_wrong_command(words: list[str], parts: list[str]) -> None:
    assert_refused(execute([*MODULE, *words]), *parts)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--stat", "x.py"], ["unknown option '--stat'", "--stats?"]),
        (["--polcy=slice_us=3", "x.py"], ["unknown option '--polcy'", "--policy?"]),
        (["--policy"], ["--policy: expected a value"]),
        (["--policy", "slice_us=soon", "-c", ""], ["--policy: slice_us: ", "'soon'"]),
        (["--policy", "batch_share=x", "-c", ""], ["--policy: batch_share: ", "'x'"]),
        (["--policy=spin_us=1.5", "-c", ""], ["--policy: spin_us: ", "'1.5'"]),
        (["--policy=spin_us=1,", "-c", ""], ["--policy: the policy has no key ''"]),
        (["--policy=spin_us", "-c", ""], ["--policy: spin_us: ", "got ''"]),
        (["--policy=slice-us=1", "-c", ""], ["has no key 'slice-us' (did you mean slice_us?)"]),
        (["--policy=x=1", "-c", ""], ["'x' (its keys are slice_us, batch_share, spin_us)"]),
        (["--job-share", "0.25", "-c", ""], ["--job-share: expected a percentage like 25%"]),
        (["--job-share=-5%", "-c", ""], ["--job-share: expected a percentage", "'-5%'"]),
        (["--job-share", "91%", "-c", ""], ["--job-share: expected 0% to 90%, got '91%'"]),
        (["--gil-profile", "x.json", "-c", ""], ["--gil-profile: expected a name that ends in"]),
        (["--gil-profile", "/no/x.folded", "-c", ""], ["'/no' does not exist"]),
        (["--no-gil=1", "-c", ""], ["--no-gil takes no value"]),
        (["--no-threads=1", "-c", ""], ["--no-threads takes no value"]),
        (["--no-thread", "-c", ""], ["unknown option '--no-thread'", "--no-threads?"]),
        (["--stats=1", "-c", ""], ["--stats takes no value"]),
        (["-S", "-c", ""], ["-S", " ".join(NOTHING)]),
        (["--stats", "--output", "", "-c", ""], ["--output: "]),
        (["--stats", "--output", "/", "-c", ""], ["--output: "]),
        (["--stats", "--output", "/no/such/folder/x.json", "-c", ""], ["'/no/such/folder'"]),
        (["--stats", "--output", "/proc/%p/none/x.json", "-c", ""], ["does not exist"]),
        (["--output", "x", "-c", ""], ["--format and --output require --stats"]),
        (["--format", "pdf", "-c", ""], ["--format: expected text or json or html, got 'pdf'"]),
        (["--policy", "slice_us=-1", "-c", ""], ["--policy: slice_us must be from 100 to", "-1"]),
        (["--policy", "batch_share=7", "-c", ""], ["--policy: batch_share must be from", "7"]),
        (["--policy", "batch_share=nan", "-c", ""], ["--policy: batch_share must be", "nan"]),
    ],
)
def test_wrong_run(words: list[str], parts: list[str], tmp_path: Path) -> None:
    assert_refused(run(*words, cwd=tmp_path), "cpythonplus run: ", *parts)


def test_no_site_with_nothing_to_activate() -> None:
    assert run(*NOTHING, "-S", "-c", "import sys; print(sys.flags.no_site)").out == "1\n"


def test_show() -> None:
    result = run("--show", "--policy", "spin_us=7", "-O", "-m", "http.server", "80")
    assert (result.status, result.stderr) == (0, b"")
    assert "--policy spin_us=7\n" in result.out
    default = ",".join(f"{name}={value}" for name, value in asdict(gil.Policy()).items())
    assert f"--policy {default} (default)\n" in run("--show").out
    assert "--no-gil switches it off" in result.out
    assert result.out.endswith(f"{shlex.quote(PYTHON)} -O -m http.server 80\n")
    assert "--no-threads switches it off" in result.out
    assert "gil         off" in run("--show", "--no-gil").out
    switched_off = run("--show", "--no-threads", "--policy", "spin_us=7")
    assert "threads     off" in switched_off.out
    assert "gil         on" in switched_off.out


def test_policy_arrives() -> None:
    """What is given is what is installed."""
    gil_feature = next(feature for feature in features.FEATURES if feature.name == "gil")
    code = "import os; print(os.environ['CPYTHONPLUS_RUN'])"
    carried = run("--policy", "slice_us=2000, batch_share=1e-5", "-c", code).out.strip()
    decoded = features.Run.decode(carried)
    assert decoded.features["gil"] == {"policy": "slice_us=2000,batch_share=1e-05"}
    assert decoded.features["threads"] == {}
    option = next(each for each in gil_feature.options if each.flag == "--policy")
    numbers = option.decode(decoded.features["gil"]["policy"])
    assert numbers == {"slice_us": 2000, "batch_share": 1e-5}


def test_the_share_of_jobs_arrives() -> None:
    """It wins over the policy's, whichever comes last; the other numbers stay."""
    probe = """\
import os
from cpythonplus._cli import features
from cpythonplus.gil import _control
_control.install_numbers = print
run = features.Run.decode(os.environ["CPYTHONPLUS_RUN"])
gil = features.FEATURES[0]
fields = {option.field: option for option in gil.options}
values = {name: fields[name].decode(value) for name, value in run.features["gil"].items()}
gil.activate(values, run)
"""
    both = ["--job-share", "25%", "--policy", "batch_share=0.5,spin_us=7"]
    assert run(*both, "-c", probe).out == "{'batch_share': 0.25, 'spin_us': 7}\n"
    assert run("--job-share=5", "-c", probe).out == "{'batch_share': 0.05}\n"
    assert "--job-share 5% (default)" in run("--show").out


def test_switching_off() -> None:
    code = (
        "import os, sys; print('CPYTHONPLUS_RUN' in os.environ, 'cpythonplus._cli' in sys.modules)"
    )
    assert run(*NOTHING, "-c", code).out == "False False\n"
    assert run(*NOTHING, "--policy", "spin_us=3", "-c", code).out == "False False\n"
    # Statistics of an unscheduled program are statistics too.
    result = run("--no-gil", "--stats", "-c", "from cpythonplus import gil; print(gil.active())")
    assert result.out == "False\n"
    assert "not scheduled" in result.err


def test_the_last_one_counts() -> None:
    code = "import os; print(os.environ['CPYTHONPLUS_RUN'])"
    carried = run("--policy=spin_us=1", "--policy=spin_us=2", "-c", code).out.strip()
    assert features.Run.decode(carried).features["gil"] == {"policy": "spin_us=2"}


@given(
    st.builds(
        features.Run,
        st.text(),
        st.text(),
        st.integers(),
        st.fixed_dictionaries(
            {},
            optional={
                "gil": st.dictionaries(st.sampled_from(["a", "b.c"]), st.text()),
                "threads": st.just({}),
                "statistics": st.dictionaries(st.just("json"), st.text()),
            },
        ),
        children=st.booleans(),
    )
)
@pytest.mark.any_version
def test_environment_string(request: features.Run) -> None:
    decoded = features.Run.decode(request.encode())
    for name in features.Run.__slots__:
        assert getattr(decoded, name) == getattr(request, name)


@pytest.mark.parametrize("text", ["x", "home", "what=1", "gil.x=1", "pid=x", "pid=1;;"])
def test_wrong_environment_string(text: str) -> None:
    """Somebody else's, or another version's: told in one line, and the program runs."""
    with pytest.raises(ValueError, match=r"key|invalid literal"):
        features.Run.decode(text)
    result = execute([PYTHON, "-c", "print(1)"], env={"CPYTHONPLUS_RUN": text})
    assert (result.status, result.stdout) == (0, b"1\n")
    assert result.err.startswith("cpythonplus run: CPYTHONPLUS_RUN is ignored: ")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("original", "words", "letters"),
    [
        (["python", "-m", "cpythonplus", "run", "-O"], [], ""),
        (["python", "-Im", "cpythonplus", "run"], ["-I"], "I"),
        (["python", "-u", "-OO", "/bin/cpythonplus", "run"], ["-u", "-OO"], "uO"),
        (["python", "-Xdev", "-X", "a=b", "-mcpythonplus"], ["-Xdev", "-X", "a=b"], ""),
        (["python", "-uWerror", "-bW", "ignore", "-"], ["-uWerror", "-bW", "ignore"], "ub"),
        (["python", "--check-hash-based-pycs", "always", "-c", "-O"], None, ""),
        (["python", "-E", "--", "-x"], ["-E"], "E"),
        (["python"], [], ""),
        ([], [], ""),
    ],
)
def test_interpreter_options(original: list[str], words: list[str] | None, letters: str) -> None:
    options = interpreter_options.of_this_process(original)
    assert options.words == (original[1:3] if words is None else words)
    assert options.letters == set(letters)


# Nothing that would start a program or write a file.
WORDS = """attach list watch path referrers trim 12x 999999999999 --format --format=html json
--output=no/x --top 0 --interval nan --show-keys --show-key --policy --policy=slice_us spin_us=1e9
--stats= -z --dump-on --malloc -m no.such -- - ="""
ODD_WORDS = ["", "a b", "\x1b[31m", "\udcff"]


@given(
    st.sampled_from([["doctor"], ["run", "--show"]]),
    st.lists(st.sampled_from(WORDS.split() + ODD_WORDS), max_size=5),
)
@pytest.mark.any_version
def test_whatever_is_typed_is_one_line_or_done(command: list[str], words: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main.main([*command, *words])
    assert status in (0, 1, 2)
    assert (err.getvalue().count("\n"), bool(out.getvalue())) == (
        (0, True) if not status else (1, False)
    )
    assert err.getvalue().replace("\n", "").isprintable()


def imported(*words: str) -> set[str]:
    """Return the modules that running `words` imports in all the interpreters that it takes."""
    result = execute(words, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert result.status == 0, result
    lines = (line.rpartition("|") for line in result.err.splitlines())
    return {name.strip() for _, bar, name in lines if bar}


DEAR = {
    "argparse",
    "contextlib",
    "ctypes",
    "dataclasses",
    "enum",
    "inspect",
    "json",
    "logging",
    "pathlib",
    "re",
    "rich",
    "subprocess",
    "threading",
    "typing",
}


def test_start_up_imports_nothing_dear() -> None:
    """The start-up budget, as something that does not depend on the machine."""
    site = imported(PYTHON, "-m", "this")  # whatever this installation's .pth files import
    started = imported(*MODULE, "run", "-c", "")
    assert sorted((started & DEAR) - site) == []
    assert "cpythonplus._cli.terminal" not in started


def test_the_hook_is_nearly_free() -> None:
    assert not {name for name in imported(PYTHON, "-c", "") if name.startswith("cpythonplus")}
