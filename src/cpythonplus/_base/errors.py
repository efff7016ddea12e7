"""The package's own exceptions."""


class UnsupportedPlatform(RuntimeError):  # noqa: N818  # it names a state, as NotImplemented does
    """This interpreter or system cannot do what was asked; nothing was changed.

    The message gives the reason in one line.
    """
