"""The Celery app. Celery carries which run to drive; the database decides who drives it.

So a message may be lost or come twice: an unclaimed run is published again, a claimed one cannot be claimed twice.
That is why messages are acknowledged early, results are ignored and a publish gives up after a moment.
"""

import os
from pathlib import Path

from celery import Celery
from django.conf import settings
from kombu.entity import Queue
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")

RUNS = "runs"
CHORES = "chores"
BACKTESTS = "backtests"
# With Kombu's default of one second a run would wait a second for its first turn.
POLL_S = 0.015
PUBLISH_TIMEOUT_S = 0.8

app = Celery("control")


def _folders(root: Path) -> dict[str, str]:
    """The folders of the filesystem broker; what lies there decides what this machine runs, so they are private."""
    folders = {name: root / name for name in ("messages", "taken", "control")}
    for folder in (root, *folders.values()):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "data_folder_in": str(folders["messages"]),
        "data_folder_out": str(folders["messages"]),
        "processed_folder": str(folders["taken"]),
        "control_folder": str(folders["control"]),
    }


def _configure() -> None:
    if settings.REDIS_URL:
        app.conf.broker_url = settings.REDIS_URL
        app.conf.broker_transport_options = {
            "socket_timeout": 5.0,
            "socket_connect_timeout": PUBLISH_TIMEOUT_S,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "max_retries": 0,
            "global_keyprefix": f"{settings.REDIS_PREFIX}:",
        }
    else:
        TRANSPORT_ALIASES["pilothouse-files"] = "control.broker:Transport"
        app.conf.broker_url = "pilothouse-files://localhost//"
        app.conf.broker_transport_options = {
            "polling_interval": POLL_S,
            "store_processed": True,
            **_folders(settings.DATA_DIR / "broker"),
        }


_configure()
app.conf.update(
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_acks_late=False,
    task_default_queue=CHORES,
    task_queues=(Queue(RUNS), Queue(CHORES), Queue(BACKTESTS)),  # type: ignore[no-untyped-call]
    task_routes={
        "control.runs.tasks.drive": {"queue": RUNS},
        "control.incidents.tasks.judge_piece": {"queue": BACKTESTS},
    },
    task_publish_retry=False,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=PUBLISH_TIMEOUT_S,
    enable_utc=True,
)
app.autodiscover_tasks()
