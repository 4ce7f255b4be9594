"""What the pool of keys hears of the attempts made with them."""

import asyncio

from agents.engine.asked import Asked
from agents.errors import ClassifiedError
from agents.ports import KeyReport, Models

_OF_KEYS = frozenset({"rate_limit", "billing", "auth"})


class KeyReports:
    """One per run."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._under_way: set[asyncio.Task[None]] = set()

    async def failed(self, asked: Asked, fault: ClassifiedError, message: str) -> None:
        """A limit that is not that of the key, or trouble of the server, must not burn the key; money spent counts.
        `message`: what the provider said, for whoever looks after the key."""
        label, spent = asked.model.credential, asked.unpaid.cost_usd if asked.unpaid else None
        rotates = fault.should_rotate_credential
        if label is None or not (rotates or (spent and spent != "0")):
            return
        reason = "server_error" if fault.reason in _OF_KEYS and not rotates else fault.reason
        cooldown_s = fault.retry_after_s if rotates else None
        told = KeyReport(
            credential=label, reason=reason, cooldown_s=cooldown_s, spent_usd=spent, said=message if rotates else ""
        )
        await self._models.report(told)

    def soon(self, report: KeyReport) -> None:
        """Beside the run."""
        if report.credential is None:
            return
        task = asyncio.ensure_future(self._models.report(report))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
