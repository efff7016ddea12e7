"""gunicorn's master and workers, with the additions of `serve`."""
