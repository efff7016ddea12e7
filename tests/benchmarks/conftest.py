"""What the tests of the benchmarks' command line share."""

import sys
from collections.abc import Callable

import pytest

from benchmarks.command import USAGE_STATUS, main


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that asks for something that cannot be done; it returns the last line."""

    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:  # argparse raises it itself
            sys.exit(main(arguments))
        assert end.value.code == USAGE_STATUS
        return capsys.readouterr().err.splitlines()[-1]

    return refused
