"""The sockets' own addresses."""

from channels.routing import URLRouter
from django.urls import re_path

from control.dashboard.consumers import FleetSocket, Nowhere, RunSocket

sockets = URLRouter(
    [
        re_path(r"^ws/runs/(?P<run>[0-9a-f-]{36})/?$", RunSocket.as_asgi()),
        re_path(r"^ws/fleet/?$", FleetSocket.as_asgi()),
        re_path(r"", Nowhere.as_asgi()),
    ]
)
