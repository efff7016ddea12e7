"""`cpythonplus serve`: gunicorn, with workers that go on sharing their memory.

gunicorn's options are gunicorn's to read; here only what has to be known before it is imported.
"""

from importlib.util import find_spec

from cpythonplus.cli.usage import UsageError


def main(arguments: list[str]) -> int:
    """Serve until the server is stopped, then SystemExit; UsageError without gunicorn."""
    if find_spec("gunicorn") is None:
        raise UsageError("needs the extra: pip install 'cpythonplus[serve]'")
    from cpythonplus.prefork import gunicorn_application

    gunicorn_application.serve(arguments)
