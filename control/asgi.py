"""The ASGI application: pages and API over HTTP, live frames over websockets."""

import os

import django
from channels.routing import ProtocolTypeRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
django.setup()

# Both read models and settings, which are there only after `setup`.
from control.dashboard.routing import sockets  # noqa: E402
from control.threaded import ThreadedHandler  # noqa: E402

application = ProtocolTypeRouter({"http": ThreadedHandler(), "websocket": sockets})
