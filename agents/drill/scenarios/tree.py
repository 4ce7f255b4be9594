"""`tree`: a run that starts eight detached sub-agents and then speaks slowly; each of them is hard to stop in its way.

Three keep shells with children of three generations busy, two run Python that waits for nothing, three speak slowly.
In the task text: `parts=N` sub-agents instead of eight, `trap=1` makes the shells deaf to TERM, `marker=WORD` is handed
down.
"""

from agents.drill.scenarios.family import naps
from agents.drill.scenarios.slow import SLOW
from agents.drill.script import Asked, Conversation, Reply, Scenario

PARTS = 8
SECONDS = 300.0
_PREFIX = "Part"
_WORK = ("shell", "python", "speech", "shell", "speech", "shell", "python", "speech")
_BLOCKING = "python3 -c 'import time\nwhile True: sum(range(20000)); time.sleep(0.02)'"


def _brief(number: int, conversation: Conversation) -> str:
    words = [f"{_PREFIX} {number + 1}: {_WORK[number % len(_WORK)]}.", f"trap={conversation.number('trap', 0):g}"]
    marker = conversation.word("marker")
    return " ".join([*words, *([f"marker={marker}"] if marker else [])])


def _play(conversation: Conversation) -> Reply:
    if conversation.task.startswith(_PREFIX):
        return _part(conversation)
    if not conversation.done("delegate"):
        parts = int(conversation.number("parts", PARTS))
        briefs = [_brief(number, conversation) for number in range(parts)]
        calls = tuple(Asked(name="delegate", args={"task": brief, "detached": True}) for brief in briefs)
        return Reply(text=f"I hand this to {parts} sub-agents and go on alone.", calls=calls)
    return SLOW.play(conversation)


def _part(conversation: Conversation) -> Reply:
    work = conversation.task.partition(":")[2].split(".")[0].strip()
    if work == "speech" or conversation.done("run_command"):
        return SLOW.play(conversation)
    command = _BLOCKING if work == "python" else naps(SECONDS)
    if work == "shell" and conversation.number("trap", 0):
        command = f"trap '' TERM; {command}"
    return Reply(text="I work.", calls=(Asked(name="run_command", args={"command": command, "timeout": int(SECONDS)}),))


TREE = Scenario(
    name="tree",
    kind=None,
    task="Let eight sub-agents work while you read me the log of the night watch.",
    goal="the whole log read out",
    play=_play,
    tools=("delegate", "run_command"),
)
