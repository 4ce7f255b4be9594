"""Writing what is kept as text in versions: checked, shown as a difference, saved; nothing typed gets lost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import policy_changes, rooms
from control.dashboard.drafts import LARGEST_TEXT, Draft, posted
from control.dashboard.sides import Row, Sides
from control.fleet import policies, versions


class BadText(Exception):
    """A text that no version may have: what is wrong, and in which line, counted from 1, as far as that can be told."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor(Generic[Row]):
    """`word` names one of them (`agent`), `words` all, also as the address of their pages.

    `read` gives the data of a text that runs could use; raises BadText. `tell` sets what a draft would change, given
    the data now in force. `fields` are a version's columns, `told` is what the audit trail keeps of it, `context` what
    the page knows besides.
    """

    word: str
    words: str
    article: str
    sides: Sides[Row]
    empty: str
    read: Callable[[Draft], dict[str, Any]]
    tell: Callable[[Draft, Mapping[str, Any]], None]
    fields: Callable[[Draft], dict[str, Any]]
    told: Callable[[Row], dict[str, Any]]
    context: Callable[[HttpRequest], dict[str, Any]]

    @property
    def verb(self) -> str:
        return f"write_{self.word}"

    def edit(self, request: HttpRequest, name: str) -> HttpResponse:
        """The text of one; with `from=REF` that of another version, which saving makes the current one."""
        row = self._found(name)
        if answer := rooms.refused(request, self.verb, f"{self.word}:{name}", f"/{self.words}/{row.name}/"):
            return answer
        if request.method != "POST":
            return self._show(request, self._begun(request, row), row)
        draft = posted(request, name)
        # Judged against what is in force now: what somebody saved meanwhile is part of the difference.
        self._judge(draft, row)
        return self._answer(request, draft, row)

    def new(self, request: HttpRequest) -> HttpResponse:
        """One under a new name: from nothing, from a file, or with `copy=REF` from another one."""
        if answer := rooms.refused(request, self.verb, f"{self.word}:new", f"/{self.words}/"):
            return answer
        if request.method != "POST":
            side = self.sides.side(request.GET.get("copy", "")[:140])
            draft = Draft(name=f"{side.name[:90]}-copy" if side else "", text=side.source if side else self.empty)
            return self._show(request, draft, None)
        draft = posted(request, request.POST.get("name", "").strip()[:200])
        draft.version = 0
        if not policies.NAME.fullmatch(draft.name):
            draft.name_problem = policies.BAD_NAME
        elif self.sides.find(draft.name) is not None:
            what = f"{self.article} {self.word} {draft.name}"
            draft.name_problem = f"There is {what} already. Choose another name, or edit that one."
        self._judge(draft, None)
        return self._answer(request, draft, None)

    def _found(self, name: str) -> Row:
        row = self.sides.find(name)
        if row is None:
            raise Http404(f"There is no {self.word} of this name.")
        return row

    def _begun(self, request: HttpRequest, row: Row) -> Draft:
        """The current text, or another version's with its difference already worked out."""
        side = self.sides.side(request.GET.get("from", "")[:140])
        if side is None:
            return Draft(name=row.name, text=self.sides.source_of(row), version=row.version)
        draft = Draft(name=row.name, text=side.source, version=row.version, reason=f"Back to {side.word}.")
        self._judge(draft, row)
        return draft

    def _judge(self, draft: Draft, row: Row | None) -> None:
        """Check the text; if it is sound, tell what it changes."""
        draft.checked = True
        if draft.problem:
            return
        if len(draft.text) > LARGEST_TEXT:
            most = f"{self.article} {self.word} has at most {LARGEST_TEXT:,}"
            draft.problem = f"The text has {len(draft.text):,} characters; {most}."
            return
        try:
            draft.body = self.read(draft)
        except BadText as bad:
            draft.problem, draft.line = bad.message, bad.line
            return
        self.tell(draft, self.sides.body_of(row) if row else {})
        if row is not None and not draft.changes and not draft.lines:
            draft.lines = policy_changes.lines(self.sides.source_of(row), draft.text)

    def _answer(self, request: HttpRequest, draft: Draft, row: Row | None) -> HttpResponse:
        saves = request.POST.get("do") == "save"
        if saves and draft.good and "file" not in request.FILES:
            return self._save(request, draft, row)
        if saves and not draft.good:
            code = "bad_name" if draft.name_problem else f"bad_{self.word}"
            audit.record(request, self.verb, f"{self.word}:{draft.name[:80]}", result=code)
        return self._show(request, draft, row)

    def _save(self, request: HttpRequest, draft: Draft, row: Row | None) -> HttpResponse:
        if row is not None and not draft.changes and not draft.lines:
            messages.success(request, "Nothing to save: this is the current version.")
            return redirect(self.word, name=draft.name)
        actor = of_request(request)
        assert actor is not None
        about = {"reason": draft.reason}
        fields = self.fields(draft)
        try:
            with transaction.atomic():
                saved = versions.save(
                    self.sides.model, draft.name, fields, by=actor.name, expected=draft.version, about=about
                )
                audit.record(
                    request,
                    self.verb,
                    f"{self.word}:{draft.name}",
                    reason=draft.reason or None,
                    before=None if saved.before is None else self.told(saved.before),
                    after=self.told(saved.row),
                    result="ok" if saved.changed else "unchanged",
                )
        except versions.VersionConflict:
            return self._conflict(request, draft)
        messages.success(request, f"Saved as version {saved.row.version}. New runs start with it.")
        return redirect(self.word, name=draft.name)

    def _conflict(self, request: HttpRequest, draft: Draft) -> HttpResponse:
        """Somebody was faster: the text stays, theirs is shown, and saving once more is a decision."""
        audit.record(request, self.verb, f"{self.word}:{draft.name}", result="version_conflict")
        now = self._found(draft.name)
        began = self.sides.find(draft.name, draft.version)
        draft.theirs = now
        before = self.sides.body_of(began) if began else {}
        draft.their_changes = policy_changes.changes(before, self.sides.body_of(now))
        draft.version = now.version
        self._judge(draft, now)
        return self._show(request, draft, now, status=409)

    def _show(self, request: HttpRequest, draft: Draft, row: Row | None, status: int = 200) -> HttpResponse:
        if draft.checked and not draft.good and status == 200:
            status = 400 if request.method == "POST" else 200
        action = reverse(f"{self.word}_edit", args=[row.name]) if row else reverse(f"{self.word}_new")
        names = {"word": self.word, "words": self.words, "action": action}
        context = {**self.context(request), **names, "draft": draft, "row": row, "next": draft.version + 1}
        return render(request, f"{self.words}/edit.html", context, status=status)
