"""The WSGI application, with everything loaded that requests will need."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_catalogue.settings")
application = get_wsgi_application()

# Django imports the views at the first request. By then a preloading server has forked, and every
# worker would build a catalogue of its own.
from examples.django_catalogue import urls  # noqa: E402, F401
