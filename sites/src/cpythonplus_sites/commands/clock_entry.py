"""The entry point of `cpythonplus-clock`; actions early in a boot import the script alone."""

import sys

SCRIPTS_OWN = ("save", "restore", "tick")


def main() -> int:
    """Carry out `cpythonplus-clock`; returns the exit status."""
    if sys.argv[1:] and sys.argv[1] in SCRIPTS_OWN:
        from cpythonplus_sites import clock

        return clock.main()
    from cpythonplus_sites.commands import clock as command

    return command.main()


if __name__ == "__main__":
    sys.exit(main())
