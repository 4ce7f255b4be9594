"""`batch`: eight calls of all concurrency classes in one turn; `sleep=N` sets the seconds its commands sleep."""

from agents.drill.script import Asked, Conversation, Reply, Scenario

SLEEP_S = 0.2
_NOTES = {"notes/alpha.txt": "alpha\n", "notes/beta.txt": "beta\n"}


def _eight(seconds: float) -> tuple[Asked, ...]:
    return (
        Asked(name="list_files", args={"path": "."}),
        Asked(name="read_file", args={"path": "notes/alpha.txt"}),
        Asked(name="read_file", args={"path": "notes/beta.txt"}),
        Asked(name="search_files", args={"pattern": "alpha"}),
        Asked(name="write_file", args={"path": "out/gamma.txt", "content": "gamma\n"}),
        Asked(name="write_file", args={"path": "out/delta.txt", "content": "delta\n"}),
        Asked(name="run_command", args={"command": f"sleep {seconds:g} && echo first"}),
        Asked(name="run_command", args={"command": f"sleep {seconds:g} && echo second"}),
    )


def _play(conversation: Conversation) -> Reply:
    if not conversation.done("write_file", path="notes/alpha.txt"):
        first = tuple(Asked(name="write_file", args={"path": path, "content": text}) for path, text in _NOTES.items())
        return Reply(text="First two notes to read from.", calls=first)
    if not conversation.done("run_command"):
        return Reply(text="Now eight calls at once.", calls=_eight(conversation.number("sleep", SLEEP_S)))
    return Reply(text=f"All {len(conversation.steps)} calls have answered.")


BATCH = Scenario(
    name="batch",
    kind="healthy",
    task="Do eight things at once.",
    goal="eight calls in one turn",
    play=_play,
    tools=("list_files", "read_file", "search_files", "write_file", "run_command"),
)
