"""The page of a postmortem: pictures, zoom, what people change and its history, and links for those outside."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from control.accounts.models import AuditEntry
from control.incidents import cases
from control.incidents.cases import Case
from control.incidents.models import ActionItem, Postmortem, PostmortemRevision, ShareLink
from control.incidents.postmortem import editing, shares
from control.runs.models import Run
from tests.control.conftest import hinted, published, quiet
from tests.control.dashboard.pages import page
from tests.control.incidents.looking_back import filed
from tests.control.incidents.test_postmortem_exports import CANARY, leaky
from tests.control.records import make_run
from tests.fixtures.night import night

__all__ = ["hinted", "published", "quiet"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def run(db: None) -> Run:
    return filed(night(laps=12))


def act(client: Client, run: Run, what: str, **given: Any) -> Any:
    return client.post(f"/runs/{run.pk}/postmortem/{what}", given, follow=True)


def test_the_page_shows_lanes_figures_and_what_would_have_stopped_it(viewer: Client, run: Run) -> None:
    html = page(viewer, f"/runs/{run.pk}/postmortem")
    for word in ("model", "run_tests", "edits", "other tools", "verdicts", "people"):
        assert f'<span class="pm-word">{word}</span>' in html
    assert html.count('class="fp-0"') >= 12 and 'class="edit back st-0"' in html
    assert "Input tokens per turn: the history that is sent again" in html and "step 6 · " in html
    assert not re.search(r"\sstyle=|\son\w+=", html)
    assert f'href="/runs/{run.pk}/postmortem"' in page(viewer, f"/runs/{run.pk}/")


def test_a_part_of_the_run_is_shown_closer_and_nonsense_shows_the_whole(viewer: Client, run: Run) -> None:
    def shapes(query: str) -> int:
        return page(viewer, f"/runs/{run.pk}/postmortem?part=picture&{query}").count("<title>")

    whole = shapes("")
    assert 0 < shapes("from=60000&to=120000") < whole / 3
    assert shapes("from=9&to=3") == shapes("from=x&to=1e9") == whole


def test_a_run_that_goes_on_has_no_postmortem_and_no_link_to_one(viewer: Client) -> None:
    going = make_run()
    assert viewer.get(f"/runs/{going.pk}/postmortem").status_code == 409
    assert "/postmortem" not in page(viewer, f"/runs/{going.pk}/")


def test_each_text_is_changed_with_history_and_never_over_unseen_words(operator: Client, run: Run) -> None:
    act(operator, run, "section", section="summary", number="0", text="First words, key sk-proj-c4naryQ8s2Vd0x7Lw3Rt9")
    act(operator, run, "section", section="summary", number="1", text="Second words")
    late = act(operator, run, "section", section="summary", number="1", text="Too late")
    assert "Somebody else has changed this meanwhile" in late.content.decode()
    # What they wrote is not lost: it stands in the form, once.
    assert "Too late</textarea>" in late.content.decode()
    html = page(operator, f"/runs/{run.pk}/postmortem")
    assert "Second words" in html and "Too late" not in html and "sk-proj-c4nary" not in html
    told = PostmortemRevision.objects.order_by("number").values_list("section", "number", "by")
    assert list(told) == [("summary", 1, "operator"), ("summary", 2, "operator")]
    assert "[redacted:" in PostmortemRevision.objects.get(number=1).text
    done = AuditEntry.objects.filter(action="write_postmortem").order_by("id").values_list("result", flat=True)
    assert [*done] == ["ok", "ok", "changed_meanwhile"]


def test_a_closed_postmortem_changes_no_more_until_it_is_opened_again(operator: Client, run: Run) -> None:
    act(operator, run, "action", kind="prevent", text="Set max_cost", owner="payments", due="2026-12-03")
    act(operator, run, "state", state="closed")
    assert (
        "This postmortem is closed"
        in act(operator, run, "section", section="well", number="0", text="x").content.decode()
    )
    item = ActionItem.objects.get()
    act(operator, run, "finish", action=item.pk, done="1")
    act(operator, run, "drop", action=item.pk)
    item.refresh_from_db()
    assert item.done_at is not None
    act(operator, run, "state", state="draft")
    act(operator, run, "drop", action=item.pk)
    assert not ActionItem.objects.exists() and Postmortem.objects.get().closed_at is None


def test_factors_are_struck_and_added(operator: Client, run: Run) -> None:
    html = page(operator, f"/runs/{run.pk}/postmortem")
    proposed = re.findall(r'name="proposed" value="(\w+)"', html)
    assert {"no_fuse", "same_answer", "oscillation"} <= {*proposed}
    act(operator, run, "factors", proposed=proposed, stands=proposed[1:], more="Flaky fixture leaks state")
    text = operator.get(f"/api/runs/{run.pk}/postmortem.md").content.decode()
    assert "- [ ] **No cost fuse on this run**" in text and "- [x] **Flaky fixture leaks state** (added)" in text


@pytest.mark.parametrize(
    ("what", "given", "words"),
    [
        ("action", {"kind": "blame", "text": "x"}, "An action item is to prevent"),
        ("action", {"kind": "detect", "text": " "}, "Say what is to be done"),
        ("action", {"kind": "detect", "text": "x", "link": "javascript:alert(1)"}, "A link begins with https"),
        ("action", {"kind": "detect", "text": "x", "due": "2026-02-31"}, "Give the day as"),
        ("state", {"state": "gone"}, "A postmortem is draft"),
        ("section", {"section": "blame", "number": "0", "text": "x"}, "has no section"),
        ("section", {"section": "well", "number": "", "text": "x"}, "Say which revision"),
        ("head", {"severity": "sev-0"}, "A severity is one of"),
        ("share", {"hours": "99999"}, "A link lasts"),
    ],
)
def test_what_cannot_be_is_refused_with_a_next_step(
    operator: Client, run: Run, what: str, given: dict[str, str], words: str
) -> None:
    assert words in act(operator, run, what, **given).content.decode()
    assert not ActionItem.objects.exists() and not ShareLink.objects.exists()


def test_a_share_link_shows_the_postmortem_until_it_ends_or_is_revoked(operator: Client, run: Run) -> None:
    html = act(operator, run, "share", hours="24", note="the vendor").content.decode()
    (url,) = re.findall(r'readonly value="http://testserver(/shared/postmortems/[\w-]+/)"', html)
    assert url not in page(operator, f"/runs/{run.pk}/postmortem")
    secret, nobody = url.split("/")[3], Client()
    seen = nobody.get(url)
    assert seen.status_code == 200 and "went in circles" in seen.content.decode()
    assert f"/runs/{run.pk}/" not in seen.content.decode()
    assert "default-src 'none'" in seen["Content-Security-Policy"] and seen["Cache-Control"] == "no-store"
    row = ShareLink.objects.get()
    assert (row.opened, row.note) == (1, "the vendor") and secret not in str(vars(row))
    assert "the vendor" in page(operator, f"/runs/{run.pk}/postmortem")
    act(operator, run, "revoke", share=row.pk)
    assert nobody.get(url).status_code == 404
    assert [*AuditEntry.objects.filter(action="share_postmortem").order_by("id").values_list("result", flat=True)] == [
        "ok",
        "ok",
    ]


def test_a_share_link_ends_by_itself(run: Run) -> None:
    now = timezone.now()
    _, secret = shares.make(run.pk, hours=1, note="", by="ann", now=now)
    assert shares.opened(secret, now + timedelta(minutes=59)) == run.pk
    assert shares.opened(secret, now + timedelta(minutes=61)) is None
    assert shares.opened("made-up", now) is None
    ShareLink.objects.update(expires_at=now - timedelta(seconds=1))
    assert Client().get(f"/shared/postmortems/{secret}/").status_code == 404


def test_no_page_form_or_share_tells_a_secret_that_a_log_or_an_incident_holds(operator: Client) -> None:
    run, now = filed(leaky(), agent="leaky"), timezone.now()
    incident = cases.open_(
        Case(key=f"run:{run.pk}:failed", rule="failed", title=f"Failed: key {CANARY}", at=now, run=run.pk), now
    )
    cases.comment(incident, f"it was {CANARY}", "ann", now)
    act(operator, run, "section", section="summary", number="0", text=f"The key {CANARY} was in the file.")
    act(operator, run, "action", kind="prevent", text=f"rotate {CANARY}")
    _, secret = shares.make(run.pk, hours=1, note="", by="ann", now=now)
    here = [f"/api/runs/{run.pk}/postmortem.{form}" for form in ("md", "html", "json")]
    for path in (f"/runs/{run.pk}/postmortem", *here, f"/shared/postmortems/{secret}/"):
        answer = operator.get(path)
        text = answer.content.decode()
        assert answer.status_code == 200 and "leaky" in text and "[redacted:" in text, path
        assert CANARY not in text and CANARY[8:28] not in text, path


def test_what_the_evidence_proposes_is_taken_over_at_a_press(operator: Client, run: Run) -> None:
    shown = page(operator, f"/runs/{run.pk}/postmortem")
    (form,) = re.findall(r'name="kind" value="(\w+)"><input type="hidden" name="text" value="(Put [^"]+)"', shown)
    assert form[0] == "prevent" and "under strict" in form[1]
    act(operator, run, "action", kind=form[0], text=form[1])
    item = ActionItem.objects.get()
    assert (item.kind, item.text) == form
    after = page(operator, f"/runs/{run.pk}/postmortem")
    assert "Proposed from the evidence" not in after and form[1] in after


def test_of_two_who_save_at_once_one_is_told(run: Run) -> None:
    now = timezone.now()
    assert editing.write(run, "well", "a", number=0, by="ann", now=now)
    with pytest.raises(editing.Refused, match="meanwhile"):
        editing.write(run, "well", "b", number=0, by="bob", now=now)
    assert not editing.write(run, "well", "a", number=1, by="ann", now=now)
