"""Django and Sentry, with a database that is configured, as most services have it."""

import os

import django
import sentry_sdk
from django.conf import settings

sentry_sdk.init(traces_sample_rate=0.1, auto_session_tracking=True)  # the DSN is in SENTRY_DSN
settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for a test only",
    ROOT_URLCONF="app",
    LOGGING_CONFIG=None,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
)
django.setup()

from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import JsonResponse
from django.urls import path


def answer(request):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'found'")
        (found,) = cursor.fetchone()
    with sentry_sdk.new_scope() as scope:
        scope.set_tag("pid", os.getpid())
        sentry_sdk.capture_message("visited")
    return JsonResponse({"pid": os.getpid(), "right": found == "found"})


def fails(request):
    sentry_sdk.set_tag("pid", os.getpid())
    raise LookupError("on purpose")


urlpatterns = [path("", answer), path("fails", fails)]
app = get_wsgi_application()
