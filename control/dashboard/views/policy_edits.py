"""Writing policies: see `control.dashboard.editor`."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required

from agents.errors import ConfigError
from control.dashboard import policy_changes, policy_refs
from control.dashboard.drafts import Draft
from control.dashboard.editor import BadText, Editor
from control.dashboard.views.policies import base
from control.fleet import policies, policy_source


def _read(draft: Draft) -> dict[str, Any]:
    try:
        body = policy_source.read(draft.text)
        policies.check(body)
    except ConfigError as error:
        raise BadText(error.message, policy_source.line_of(draft.text, error)) from None
    return body


def _tell(draft: Draft, before: Mapping[str, Any]) -> None:
    draft.changes = policy_changes.changes(before, draft.body)


EDITOR = Editor(
    word="policy",
    words="policies",
    article="a",
    sides=policy_refs.SIDES,
    empty='# What it is for.\nnote = ""\n\n[fuses]\nmax_steps = 60\n',
    read=_read,
    tell=_tell,
    fields=lambda draft: {"body": draft.body, "source": draft.text},
    told=lambda row: {"version": row.version, "body": row.body},
    context=base,
)


edit = login_required(EDITOR.edit)
new = login_required(EDITOR.new)
