"""`runaway`: asks one failing tool the same thing for ever; only a limit or a person ends it."""

from agents.drill.script import Asked, Conversation, Reply, Scenario

CALL = Asked(name="read_file", args={"path": "config/missing.yaml"})


def _play(conversation: Conversation) -> Reply:
    call = CALL if CALL.name in conversation.offered else Asked(name=min(conversation.offered), args={})
    return Reply(text="The file has to be there. I will read it again.", calls=(call,))


RUNAWAY = Scenario(
    name="runaway",
    kind="loop",
    task="Read config/missing.yaml and tell me the port in it.",
    goal="the port in config/missing.yaml",
    play=_play,
    tools=("read_file",),
)
