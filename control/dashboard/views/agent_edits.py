"""Writing agents: see `control.dashboard.editor`. What runs could not use is refused with its place in the text."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest

from agents.errors import ConfigError
from control.dashboard import agent_refs, policy_changes
from control.dashboard.drafts import Draft
from control.dashboard.editor import BadText, Editor
from control.dashboard.views.agents import base
from control.fleet import agent_source, policy_source
from control.fleet.models import Agent, Policy
from control.runs import fitness


def _read(draft: Draft) -> dict[str, Any]:
    try:
        body = agent_source.read(draft.text)
        fitness.check(body, itself=draft.name)
    except ConfigError as error:
        raise BadText(error.message, policy_source.line_of(draft.text, error)) from None
    except fitness.Unfit as unfit:
        # Its message need not name the place, so the place is asked for alone.
        place = ConfigError("bad_agent", unfit.place)
        raise BadText(unfit.message, policy_source.line_of(draft.text, place)) from None
    return body


def _tell(draft: Draft, before: Mapping[str, Any]) -> None:
    draft.changes = agent_refs.told(before, draft.body)
    draft.lines = policy_changes.lines(str(before.get("prompt", "")), draft.body["prompt"])


def _context(request: HttpRequest) -> dict[str, Any]:
    return {
        **base(request),
        "tools": fitness.known_tools(),
        "policies": Policy.objects.filter(current=True).order_by("name").values_list("name", flat=True),
        "agents": Agent.objects.filter(current=True).order_by("name").values_list("name", flat=True),
    }


EDITOR = Editor(
    word="agent",
    words="agents",
    article="an",
    sides=agent_refs.SIDES,
    empty='# What it is for.\nprompt = """\nYou are …\n"""\ntools = ["list_files", "read_file", "search_files"]\n',
    read=_read,
    tell=_tell,
    fields=lambda draft: {**draft.body, "source": draft.text},
    told=lambda row: {"version": row.version, **agent_source.body_of(row)},
    context=_context,
)


edit = login_required(EDITOR.edit)
new = login_required(EDITOR.new)
