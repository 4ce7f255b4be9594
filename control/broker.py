"""Celery's filesystem broker for one machine, with messages that appear whole and vanish once taken.

Kombu's own transport opens the message's file before it writes it, so that a reader may take half a message, and keeps
taken messages for ever or moves them through the shared temporary directory.
"""

import contextlib
import os
import uuid
from queue import Empty
from time import time_ns
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads


class Channel(filesystem.Channel):
    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{time_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        target = os.path.join(self.data_folder_out, name)
        hidden = f"{target}.part"
        with open(hidden, "w", encoding="utf-8") as file:
            file.write(dumps(payload))  # type: ignore[no-untyped-call]
        os.rename(hidden, target)

    def _get(self, queue: str, timeout: Any = None) -> Any:
        ending = f".{queue}.msg"
        for name in sorted(name for name in os.listdir(self.data_folder_in) if name.endswith(ending)):
            taken = os.path.join(self.processed_folder, name)
            try:
                # Of several workers that see the file, one renames it.
                os.rename(os.path.join(self.data_folder_in, name), taken)
            except FileNotFoundError:
                continue
            with open(taken, encoding="utf-8") as file:
                text = file.read()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(taken)
            return loads(text)  # type: ignore[no-untyped-call]
        raise Empty


class Transport(filesystem.Transport):
    Channel = Channel
