"""`slow`: one long answer, a token every 50 ms for about a minute; `tokens=N` and `pace_ms=N` in the task change it."""

from agents.drill.script import Conversation, Reply, Scenario

TOKENS = 1200
PACE_MS = 50.0
_LINE = "wind from the west, light swell, all lamps burning, nothing to report."


def _play(conversation: Conversation) -> Reply:
    tokens = int(conversation.number("tokens", TOKENS))
    words: list[str] = []
    while len(words) < tokens:
        words += [f"({len(words) // 13 + 1})", *_LINE.split()]
    return Reply(text=" ".join(words[:tokens]), pace_s=conversation.number("pace_ms", PACE_MS) / 1000)


SLOW = Scenario(
    name="slow",
    kind=None,
    task="Read me the log of the night watch, slowly.",
    goal="the whole log read out",
    play=_play,
    needs_tools=False,
)
