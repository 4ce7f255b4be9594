"""`bench`: turns as fast as they go, one trivial call each; 50, or the first number in the task text.

With real tools every look finds something new, as a guard expects of honest work: lines of a file, one by one.
"""

import re

from agents.drill.script import Asked, Conversation, Reply, Scenario

TURNS = 50
_FILE = "numbers.txt"


def _play(conversation: Conversation) -> Reply:
    found = re.search(r"\d+", conversation.task)
    turns = int(found.group()) if found else TURNS
    done = conversation.answers
    if done >= turns:
        return Reply(text=f"Done after {done} turns.")
    if not {"read_file", "write_file"} <= set(conversation.offered):
        return Reply(text="", calls=(Asked(name=min(conversation.offered), args={}),))
    if done == 0:
        lines = "".join(f"{n} times {n + 7} is {n * (n + 7)}\n" for n in range(1, turns + 1))
        return Reply(text="", calls=(Asked(name="write_file", args={"path": _FILE, "content": lines}),))
    return Reply(text="", calls=(Asked(name="read_file", args={"path": _FILE, "start": done, "lines": 1}),))


BENCH = Scenario(
    name="bench",
    kind=None,
    task="Take 50 turns.",
    goal="all turns taken",
    play=_play,
    tools=("read_file", "write_file"),
)
