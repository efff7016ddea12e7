"""Settings of the service. Nothing here is secret, and there is no database."""

import os

ITEMS = int(os.environ.get("CATALOGUE_ITEMS", "110000"))
"""How many items the catalogue has; 0 makes it a small application that is all imports."""

COLLECT = os.environ.get("CATALOGUE_COLLECT") == "1"
"""Whether `/debug/collect/` is there, which runs a full garbage collection."""

SECRET_KEY = "an example that signs nothing"  # noqa: S105
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
USE_TZ = True
LOGGING_CONFIG = None

# A usual set of applications: what they import is part of what a worker shares.
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]
DATABASES: dict[str, dict[str, str]] = {}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
ROOT_URLCONF = "examples.django_catalogue.urls"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
}
