"""The ASGI application: pages and API over HTTP, live frames over websockets."""

import os
import threading

import django
from channels.routing import ProtocolTypeRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
django.setup()

# Both read models and settings, which are there only after `setup`.
from control.dashboard.render import warm_up  # noqa: E402
from control.dashboard.routing import sockets  # noqa: E402
from control.threaded import ThreadedHandler  # noqa: E402

# Beside the start, not before it.
threading.Thread(target=warm_up, name="templates", daemon=True).start()

application = ProtocolTypeRouter({"http": ThreadedHandler(), "websocket": sockets})
