"""`bench`: turns as fast as they go, one trivial call each; 50, or the first number in the task text."""

import re

from agents.drill.script import Asked, Conversation, Reply, Scenario

TURNS = 50


def _play(conversation: Conversation) -> Reply:
    found = re.search(r"\d+", conversation.task)
    if conversation.answers >= (int(found.group()) if found else TURNS):
        return Reply(text=f"Done after {conversation.answers} turns.")
    if "list_files" in conversation.offered:
        return Reply(text="", calls=(Asked(name="list_files", args={"path": "."}),))
    return Reply(text="", calls=(Asked(name=min(conversation.offered), args={}),))


BENCH = Scenario(
    name="bench", kind=None, task="Take 50 turns.", goal="all turns taken", play=_play, tools=("list_files",)
)
