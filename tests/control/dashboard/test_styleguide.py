"""The style guide shows every part: each kind of event, each state, each icon; and it writes nothing."""

import re

import pytest
from django.test import Client

from agents.kinds import KINDS
from control.dashboard import samples, states
from control.runs.models import Event, Run
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def test_every_state_icon_and_rung_is_there(viewer: Client):
    html = page(viewer, "/styleguide")
    text = words(html)
    for state in states.WORDS.values():
        assert state.word in text
    for word in (*states.WAITING.values(), "No contact", "Draining", *states.RUNGS):
        assert word in text, word
    known = set(re.findall(r'<symbol id="i-([a-z-]+)"', html))
    listed = html[html.index('class="guide-icons"') :].split("</ul>")[0]
    assert known == set(re.findall("<code>([a-z-]+)</code>", listed))


def test_every_kind_of_event_is_shown_in_its_own_form(viewer: Client):
    kinds = {line[0].kind for line in samples._log()}
    assert set(KINDS) - kinds <= {"call.late", "turn.completed"}
    html = samples.turns()
    # One of a later version is shown raw, and only that one.
    assert html.count("a later version") == 1, html


def test_it_has_no_run_and_writes_none(viewer: Client):
    html = page(viewer, "/styleguide")
    assert not Run.objects.exists() and not Event.objects.exists()
    assert len(re.findall(r'id="([^"]+)"', html)) == len(set(re.findall(r'id="([^"]+)"', html)))
