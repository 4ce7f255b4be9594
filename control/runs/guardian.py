"""The guardian of this worker: a child process that ends the worker's tools when the worker itself is gone."""

import subprocess

from agents.tools.guardian import start_guardian


class Guardian:
    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start it, or start it again if it is gone."""
        if self._process is None or self._process.poll() is not None:
            self._process = start_guardian(self._worker)

    def close(self, timeout_s: float) -> None:
        """Let it end what is left, and itself."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            pass  # it goes on with its work on its own
