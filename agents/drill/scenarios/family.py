"""`family`: two sub-agents at the same time, each with processes that have children of their own.

In the task text: `seconds=N` is how long each sub-agent works, `depth=2` lets each start one more, `marker=WORD` is
handed down. A sub-agent may speak to model `family-child`, or to `family` itself: the task tells.
"""

from agents.drill.script import Asked, Conversation, Reply, Scenario, first_line

SECONDS = 10.0
_PIECE_S = 2.0
_NAP_S = 0.2
_PREFIX = "Sub-task"


def _brief(name: str, conversation: Conversation, depth: int) -> str:
    marker = conversation.word("marker")
    words = [f"{_PREFIX} {name}: keep two loops of naps going.", f"seconds={conversation.number('seconds', SECONDS):g}"]
    return " ".join([*words, f"depth={depth}", *([f"marker={marker}"] if marker else [])])


def _delegate(name: str, conversation: Conversation, depth: int) -> Asked:
    return Asked(name="delegate", args={"task": _brief(name, conversation, depth)})


def _parent(conversation: Conversation) -> Reply:
    if conversation.task.startswith(_PREFIX):
        return _child(conversation)
    started = conversation.done("delegate")
    if not started:
        depth = int(conversation.number("depth", 1)) - 1
        calls = tuple(_delegate(name, conversation, depth) for name in ("A", "B"))
        return Reply(text="I hand this to two sub-agents at the same time.", calls=calls)
    ends = "; ".join(first_line(step.result) for step in started)
    return Reply(text=f"Both sub-agents have answered: {ends}")


def naps(seconds: float) -> str:
    """A shell command that takes about this long and keeps processes of three generations alive meanwhile."""
    rounds = max(1, round(seconds / _NAP_S))
    loop = f"n=0; while [ $n -lt {rounds} ]; do sleep {_NAP_S}; n=$((n+1)); done"
    return f"sh -c '{loop}' & sh -c '{loop}' & wait; echo rested"


def _child(conversation: Conversation) -> Reply:
    seconds = conversation.number("seconds", SECONDS)
    # Long tasks in fewer, longer commands, so that no turn budget ends them.
    piece = max(_PIECE_S, seconds / 20)
    pieces = max(1, round(seconds / piece))
    done = len(conversation.done("run_command"))
    if done >= pieces:
        return Reply(text=f"All {pieces} naps taken.")
    calls = [Asked(name="run_command", args={"command": naps(min(piece, seconds))})]
    depth = int(conversation.number("depth", 0))
    if depth > 0 and not done and "delegate" in conversation.offered:
        name = conversation.task.removeprefix(_PREFIX).split(":")[0].strip() + ".1"
        calls.insert(0, _delegate(name, conversation, depth - 1))
    return Reply(text=f"Nap {done + 1} of {pieces}.", calls=tuple(calls))


FAMILY = Scenario(
    name="family",
    kind=None,
    task="Let two sub-agents work at the same time.",
    goal="answers of both sub-agents",
    play=_parent,
    tools=("delegate", "run_command"),
)
CHILD = Scenario(
    name="family-child",
    kind=None,
    task=f"{_PREFIX} A: keep two loops of naps going.",
    goal="all naps taken",
    play=_child,
    tools=("run_command",),
)
