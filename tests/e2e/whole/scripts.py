"""Models that a test writes itself: a name, and what it answers to each request of a run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.scripted_server import Response, status

Answer = Callable[[int, Any], Awaitable[Response]]


@dataclass(slots=True)
class Scripts:
    """`play(name, answer)` adds a model; `answer(n, request)` gives its nth answer, from 0."""

    base_url: str = ""
    _models: dict[str, Answer] = field(default_factory=dict)

    def play(self, name: str, answer: Answer) -> None:
        self._models[name] = answer

    async def answer(self, request: Any) -> Response:
        model = self._models.get(request["model"])
        if model is None:
            return status(404)
        given = sum(1 for message in request["messages"] if message["role"] == "assistant")
        return await model(given, request)
