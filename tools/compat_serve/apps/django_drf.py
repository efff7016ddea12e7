"""Django and its REST framework: each request is validated, written as a row and read again."""

import os

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for a test only",
    ROOT_URLCONF="app",
    USE_TZ=True,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework"],
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "visits.db", "CONN_MAX_AGE": 60}
    },
    REST_FRAMEWORK={"DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"]},
)
django.setup()

from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.urls import path
from rest_framework import serializers, views
from rest_framework.response import Response


class Visit(models.Model):
    pid = models.IntegerField()

    class Meta:
        app_label = "app"
        db_table = "visits"


class VisitSerializer(serializers.ModelSerializer):
    class Meta:
        model = Visit
        fields = ("id", "pid")


class Visits(views.APIView):
    def get(self, request):
        serializer = VisitSerializer(data={"pid": os.getpid()})
        serializer.is_valid(raise_exception=True)
        serializer.save()
        found = Visit.objects.get(pk=serializer.data["id"])
        return Response({"pid": found.pid, "right": found.pid == os.getpid()})


with connection.cursor() as cursor:
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY, pid INTEGER)")

urlpatterns = [path("", Visits.as_view())]
app = get_wsgi_application()
