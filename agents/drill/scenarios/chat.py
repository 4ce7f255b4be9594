"""`chat`: one turn, no tools, the task said back."""

from agents.drill.script import Conversation, Reply, Scenario


def _play(conversation: Conversation) -> Reply:
    return Reply(text=f"You said: {conversation.task}")


CHAT = Scenario(name="chat", kind=None, task="Say hello.", goal="a reply", play=_play, needs_tools=False)
