"""A Flask application under gunicorn's gthread worker."""
