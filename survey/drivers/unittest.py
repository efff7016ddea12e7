"""The standard library's unittest, and its mock."""

import io
import unittest
from unittest import mock

from survey.drivers.support import fails


class _Tests(unittest.TestCase):
    def test_passes(self) -> None:
        self.addCleanup(str)
        with self.subTest(n=1):
            self.assertEqual(1, 1)

    def test_expects(self) -> None:
        with self.assertRaises(ValueError) as caught:
            raise ValueError("x")
        self.assertEqual(str(caught.exception), "x")

    def test_fails(self) -> None:
        self.assertEqual([1], [2])

    def test_raises(self) -> None:
        raise ValueError("x")

    def test_fails_within(self) -> None:
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(n, 1)

    def test_cleans_up_badly(self) -> None:
        self.addCleanup(int, "x")

    def test_skips(self) -> None:
        self.skipTest("reason")

    @unittest.expectedFailure
    def test_known(self) -> None:
        raise ValueError("x")

    def test_does_not_raise(self) -> None:
        with self.assertRaises(ValueError):
            pass

    def test_warns(self) -> None:
        with self.assertWarns(UserWarning):
            pass

    def test_logs(self) -> None:
        with self.assertLogs("survey"):
            pass


class _Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_passes(self) -> None:
        pass

    async def test_raises(self) -> None:
        raise ValueError("x")


class _BrokenClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        raise ValueError("x")

    def test_passes(self) -> None:
        pass


def _run(kind: type[unittest.TestCase], *names: str) -> None:
    """The tests of these names, with results thrown away."""
    suite = unittest.TestSuite(kind(name) for name in names)
    unittest.TextTestRunner(stream=io.StringIO()).run(suite)


def passing() -> None:
    _run(_Tests, "test_passes")


def assert_raises() -> None:
    _run(_Tests, "test_expects")


def passing_asynchronously() -> None:
    _run(_Asynchronous, "test_passes")


def load() -> None:
    unittest.defaultTestLoader.loadTestsFromTestCase(_Tests)


def mock_call() -> None:
    double = mock.Mock(return_value=1)
    double(2)
    double.assert_called_once_with(2)


def mock_attributes() -> None:
    double = mock.MagicMock()
    double.a.b(1)
    len(double)


def mock_autospec() -> None:
    mock.create_autospec(_run)(_Tests)


def mock_patch() -> None:
    with mock.patch("survey.drivers.unittest._run"):
        _run(_Tests)


def failing() -> None:
    _run(_Tests, "test_fails")


def raising() -> None:
    _run(_Tests, "test_raises")


def failing_within() -> None:
    _run(_Tests, "test_fails_within")


def failing_cleanup() -> None:
    _run(_Tests, "test_cleans_up_badly")


def skipping() -> None:
    _run(_Tests, "test_skips")


def expected_failure() -> None:
    _run(_Tests, "test_known")


def nothing_raised() -> None:
    _run(_Tests, "test_does_not_raise", "test_warns", "test_logs")


def failing_class() -> None:
    _run(_BrokenClass, "test_passes")


def raising_asynchronously() -> None:
    _run(_Asynchronous, "test_raises")


def missing_test() -> None:
    unittest.defaultTestLoader.loadTestsFromName("no.such.module")


def mock_that_raises() -> None:
    fails(ValueError, mock.Mock(side_effect=ValueError))


def mock_that_was_not_called() -> None:
    fails(AssertionError, lambda: mock.Mock().assert_called_once_with(1))


def patch_of_what_is_missing() -> None:
    def work() -> None:
        with mock.patch("survey.drivers.unittest.missing"):
            pass

    fails(AttributeError, work)


ORDINARY = [
    passing,
    assert_raises,
    passing_asynchronously,
    load,
    mock_call,
    mock_attributes,
    mock_autospec,
    mock_patch,
]
ERRORS = [
    failing,
    raising,
    failing_within,
    failing_cleanup,
    skipping,
    expected_failure,
    nothing_raised,
    failing_class,
    raising_asynchronously,
    missing_test,
    mock_that_raises,
    mock_that_was_not_called,
    patch_of_what_is_missing,
]
