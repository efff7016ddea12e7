"""Django Channels: HTTP through Django, and a websocket that talks over a channel layer."""

import os

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for a test only",
    ROOT_URLCONF="app",
    INSTALLED_APPS=["channels"],
    CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
)
django.setup()

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.http import JsonResponse
from django.urls import path


class Room(AsyncJsonWebsocketConsumer):
    async def connect(self):
        await self.channel_layer.group_add("room", self.channel_name)
        await self.accept()

    async def receive_json(self, content):
        await self.channel_layer.group_send("room", {"type": "said", "text": content["text"]})

    async def said(self, event):
        await self.send_json({"pid": os.getpid(), "text": event["text"]})


async def answer(request):
    return JsonResponse({"pid": os.getpid()})


def blocking_answer(request):
    return JsonResponse({"pid": os.getpid()})


urlpatterns = [path("", answer), path("blocking", blocking_answer)]
rooms = URLRouter([path("room", Room.as_asgi())])
app = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": rooms})
