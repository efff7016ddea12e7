"""The command line of `python` itself, read as CPython's own getopt reads it (3.11 to 3.15)."""

FLAGS = frozenset("bBdEhiIOPqRsStuvVx?")
"""Short options without a value."""
WITH_VALUE = frozenset("WX")
"""Short options with a value, attached or as the next word."""
LONG_WITH_VALUE = "--check-hash-based-pycs"
LONG_TELLING = frozenset({"--version", "--help-env", "--help-xoptions", "--help-all"})
"""Long options with which the interpreter prints something about itself, and exits."""


class Options:
    """The interpreter options at the front of a command line, and the words behind them.

    words: the options as given, so that the program's sys.orig_argv is as given too. letters: their
    flags. program: the words from the program on, `-c CODE ...`, `-um MODULE ...`, a script or `-`
    and its arguments; kind: "-c", "-m", "-", "script" or "" for none; name: the code, the module or
    the script; mixed_in: flags in the word that begins the program, the `u` of `-um`. telling:
    whether the interpreter only prints, for example its version or a mistake in an option, and runs
    nothing.
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
        """Store `words` as the program: a script or `-`, perhaps behind `--`."""
        self.program = list(words)
        if words != ["--"]:
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
        # `-Im cpythonplus`: the word belongs to this program, its flags also to the next one.
        result.words.append(f"-{result.mixed_in}")
    return result


def take(words: list[str], result: Options) -> int:
    """Read one word (with its value) of `words` into `result`.

    Returns the number of words that were used. 0: the first is no interpreter option. If the
    program begins, all the words are used and `result.program` holds it; that can be inside of a
    word, as in `-um http.server`. The same holds for a word that `python` will refuse:
    `result.telling`.
    """
    word = words[0]
    if word in LONG_TELLING or word == LONG_WITH_VALUE:
        result.telling |= word in LONG_TELLING
        return _take_option(1 if word in LONG_TELLING else 2, words, result)
    if word.startswith("--") or not word.startswith("-") or word == "-":
        return 0
    for position, letter in enumerate(word[1:], start=1):
        attached = word[position + 1 :]
        if letter in ("c", "m"):
            if not attached and not words[1:]:
                break
            result.kind, result.name = f"-{letter}", attached or words[1]
            result.mixed_in = word[1:position]
            result.program = list(words)
            return len(words)
        if letter in WITH_VALUE:
            return _take_option(1 if attached else 2, words, result)
        if letter not in FLAGS:
            break
        result.letters.add(letter)
        result.telling |= letter == "V"
    else:
        return _take_option(1, words, result)
    return _refused(words, result)


def _take_option(count: int, words: list[str], result: Options) -> int:
    """Take an option of `count` words."""
    if len(words) < count:
        return _refused(words, result)
    result.words += words[:count]
    return count


def _refused(words: list[str], result: Options) -> int:
    """Leave the words to the interpreter, which reports the mistake in the first of them."""
    result.telling = True
    result.program = list(words)
    return len(words)
