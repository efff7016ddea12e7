"""The command line of `python` itself, read as CPython's own getopt reads it (3.11 to 3.15)."""

FLAGS = frozenset("bBdEiIJOPqRsStuvVx?h")
"""Short options without a value."""
WITH_VALUE = frozenset("WX")
"""Short options with a value, attached or as the next word."""
LONG_WITH_VALUE = "--check-hash-based-pycs"
LONG_TELLING = frozenset({"--version", "--help-env", "--help-xoptions", "--help-all"})
"""Long options with which the interpreter tells something about itself, and ends."""


class Options:
    """The interpreter options at the front of a command line, and what stands behind them.

    words: the options as given, so that the program's sys.orig_argv is as given too.
    letters: their flags.
    program: the words from the program on, `-c CODE ...`, `-um MODULE ...`, a script or `-` and its
    arguments; kind: what it is, "-c", "-m", "-", "script" or "" for none; name: the code, the
    module or the script; mixed_in: flags in the word that begins the program, the `u` of `-um`.
    telling: whether the interpreter tells its version or the like, and runs nothing.
    """

    __slots__ = ("kind", "letters", "mixed_in", "name", "program", "telling", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.letters: set[str] = set()
        self.program: list[str] = []
        self.kind = ""
        self.name = ""
        self.mixed_in = ""
        self.telling = False

    def set_script(self, words: list[str]) -> None:
        """Note that `words` are the program: a script or `-`, perhaps behind `--`."""
        self.program = list(words)
        self.name = words[words[0] == "--"]
        self.kind = "-" if self.name == "-" else "script"


def of_this_process(original: list[str]) -> Options:
    """Return the options of the running interpreter; `original` is `sys.orig_argv`.

    `subprocess._args_from_interpreter_flags` is not used: it is private, it knows nothing of `-u`,
    `-i`, `-x` or of a new `-X` option, and importing subprocess costs 8 ms.
    """
    result = Options()
    rest = original[1:]
    while rest:
        taken = take(rest, result)
        if taken == 0:
            break
        del rest[:taken]
    if result.mixed_in:
        # `-Im cpythonplus`: the word goes with this program, its flags are for the next too.
        result.words.append(f"-{result.mixed_in}")
    return result


def take(words: list[str], result: Options) -> int:
    """Read one word (with its value) of `words` into `result`.

    Returns how many words were used. 0: the first is no interpreter option. Where the program
    begins, all the words are used and `result.program` holds it; that can be inside of a word, as
    in `-um http.server`. ValueError: expected a value.
    """
    word = words[0]
    if word in LONG_TELLING or word == LONG_WITH_VALUE:
        taken = [word] if word in LONG_TELLING else [word, _value(word, "", words)]
        result.words += taken
        result.telling |= word in LONG_TELLING
        return len(taken)
    if word.startswith("--") or not word.startswith("-") or word == "-":
        return 0
    for position, letter in enumerate(word[1:], start=1):
        attached = word[position + 1 :]
        if letter in ("c", "m"):
            value = _value(f"-{letter}", attached, words)
            result.kind, result.name = f"-{letter}", value
            result.mixed_in = word[1:position]
            result.program = list(words)
            return len(words)
        if letter in WITH_VALUE:
            result.words.append(word)
            if not attached:
                result.words.append(_value(f"-{letter}", attached, words))
            return 1 if attached else 2
        if letter not in FLAGS:
            return 0
        result.letters.add(letter)
        result.telling |= letter == "V"
    result.words.append(word)
    return 1


def _value(option: str, attached: str, words: list[str]) -> str:
    if attached:
        return attached
    if not words[1:]:
        raise ValueError(f"{option}: expected a value")
    return words[1]
