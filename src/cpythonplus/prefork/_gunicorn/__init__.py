"""gunicorn's master and workers, with what `serve` adds."""
