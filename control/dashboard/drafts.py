"""A text on its way to become a version of a policy or an agent: what was typed, and what there is to say about it."""

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from control.dashboard import policy_changes
from control.dashboard.policy_changes import Change
from control.fleet.models import Agent, Policy

LARGEST_TEXT = 250_000
AROUND = 1


@dataclass(slots=True, kw_only=True)
class Draft:
    """`version` is the one it began from; `checked`: what is said of it stands for the text as it is."""

    name: str
    text: str
    version: int = 0
    reason: str = ""
    problem: str = ""
    line: int | None = None
    name_problem: str = ""
    checked: bool = False
    body: dict[str, Any] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    # What somebody else saved meanwhile.
    theirs: Policy | Agent | None = None
    their_changes: list[Change] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.problem or self.name_problem)

    @property
    def excerpt(self) -> list[tuple[int, str]]:
        """The line in question with its neighbours."""
        if self.line is None:
            return []
        rows = self.text.splitlines()
        first, last = max(0, self.line - 1 - AROUND), min(len(rows), self.line + AROUND)
        return [(number + 1, rows[number]) for number in range(first, last)]

    @property
    def groups(self) -> list[tuple[str, list[Change]]]:
        return policy_changes.grouped(self.changes)


def posted(request: HttpRequest, name: str) -> Draft:
    """What the form holds. A file that was chosen takes the place of the text, to be looked at first."""
    version = request.POST.get("version", "")
    draft = Draft(
        name=name,
        text=request.POST.get("text", "").replace("\r\n", "\n"),
        version=int(version) if version.isascii() and version.isdigit() and len(version) < 9 else 0,
        reason=request.POST.get("reason", "").replace("\x00", "").strip()[:500],
    )
    file = request.FILES.get("file")
    if file is not None and file.size is not None:
        if file.size > LARGEST_TEXT:
            draft.problem = f"The file has {file.size:,} bytes; at most {LARGEST_TEXT:,} are taken."
            return draft
        try:
            draft.text = file.read().decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            draft.problem = "The file is no text in UTF-8. The text below was left as it is."
    return draft
