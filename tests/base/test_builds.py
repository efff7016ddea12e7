"""What the extension says where it was built for another build of the interpreter."""

from tests.support import run_child


def test_an_extension_of_another_build_is_refused() -> None:
    """A debug build finds those of ordinary builds, too, and is told from them by a function."""
    child = run_child(
        """
        import sys
        if hasattr(sys, "gettotalrefcount"):
            del sys.gettotalrefcount
        else:
            sys.gettotalrefcount = lambda: 0
        try:
            import cpythonplus._native
        except ImportError as error:
            print(error)
        from cpythonplus import UnsupportedPlatform, threads
        try:
            threads.patch()
        except UnsupportedPlatform as error:
            print(error)
        """
    )
    refused, told = child.out.splitlines()
    assert refused.endswith("build it with this interpreter"), refused
    assert refused in told
