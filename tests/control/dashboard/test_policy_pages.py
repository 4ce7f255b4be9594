"""Policies in the window: read by everyone, edited by admins, compared, restored, copied; and nothing typed is lost."""

import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.policy.policies import shipped
from control.accounts.models import AuditEntry
from control.fleet import policies, policy_source, versions
from control.fleet.models import Agent, Policy
from tests.control.dashboard.pages import page
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
EVIL = "<script>alert(1)</script>\u202e"
MINE = """# Why so few: the night of the 3rd.
note = "Few steps."
approvals = [{ tool = "run_command", when = { command = "git push*" }, why = "Pushing is for people." }]

[fuses]
max_steps = 40
max_working_seconds = 5400

[rules]
repeat_read = { observe = 2, block = 3, stop = 10, mode = "stub", shadow = true }

[identity]
heartbeat = false
"""


def saved(text: str = MINE, name: str = "mine", by: str = "ann", reason: str = "") -> Policy:
    fields = {"body": policy_source.read(text), "source": text}
    return versions.save(Policy, name, fields, by=by, about={"reason": reason}).row


def edit(client: Client, text: str, *, version: int = 1, do: str = "save", name: str = "mine", **more: Any) -> Any:
    return client.post(f"/policies/{name}/edit/", {"text": text, "version": version, "do": do, **more})


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_the_list_tells_fuses_ladder_users_and_runs(viewer: Client):
    saved(reason="A trial")
    Agent.objects.filter(name="default").update(policy="mine")
    make_run(policy="mine", spec={"policy_version": 1})
    html = page(viewer, "/policies/")
    row = words(html[html.index('id="policy-mine"') :].split("</tr>")[0])
    for word in (
        "mine v1",
        "Few steps.",
        "1 h 30 m of work",
        "1 rule on results, 1 in shadow",
    ):
        assert word in row, word
    assert "default" in row and "A trial" in row and "Runs now 1" in row and "ann" in row
    assert html.count(">shipped<") == 4 and "/-/new/" not in html


def test_a_policy_is_laid_out_and_shows_its_source_with_remarks(viewer: Client):
    saved()
    text = words(page(viewer, "/policies/mine/"))
    for word in (
        "Tool steps 40 max_steps", "Working time 1 h 30 m",
        "repeat_read shadow The same read, the same answer 2 – 3 10",
        "heartbeat exempt", "run_command command like git push* Pushing is for people.", "# Why so few", "block 1 rule",
    ):  # fmt: skip
        assert word in text, word
    ladder = words(page(viewer, "/policies/ladder/"))
    assert "observe from 2" in ladder and "steer off" in ladder and "stop from 6" in ladder
    assert "# Counts repeats" in ladder and "saved by pilothouse" in ladder


@pytest.mark.parametrize("path", ["/policies/nobody/", "/policies/mine/versions/9/", "/policies/nobody/versions/"])
def test_what_is_not_there_is_not_found(viewer: Client, path: str):
    assert viewer.get(path).status_code == 404
    assert viewer.get("/policies/-/compare/?a=nobody&b=strict@x").status_code == 404


def test_saving_makes_a_version_and_an_audit_row_with_before_and_after(admin: Client):
    saved()
    answer = edit(admin, MINE.replace("= 40", "= 30"), reason="40 was too many")
    assert answer.status_code == 302 and answer["Location"] == "/policies/mine/"
    row = policies.current("mine")
    assert row is not None and (row.version, row.created_by, row.reason) == (2, "admin", "40 was too many")
    assert row.source.startswith("# Why so few") and row.body["fuses"]["max_steps"] == 30
    audit = AuditEntry.objects.get(action="write_policy")
    assert (audit.target, audit.result, audit.reason) == ("policy:mine", "ok", "40 was too many")
    assert audit.before["body"]["fuses"]["max_steps"] == 40 and audit.after["body"]["fuses"]["max_steps"] == 30
    history = words(page(admin, "/policies/mine/versions/"))
    assert "fuses.max_steps was 40 → now 30" in history and "“40 was too many”" in history


def test_a_remark_alone_is_a_version_and_the_same_text_is_none(admin: Client):
    saved()
    edit(admin, MINE.replace("the 3rd", "the 4th"))
    assert Policy.objects.filter(name="mine").count() == 2
    assert "Only remarks or layout." in page(admin, "/policies/mine/versions/")
    edit(admin, MINE.replace("the 3rd", "the 4th"), version=2)
    assert Policy.objects.filter(name="mine").count() == 2


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("= 40", "= 40x"), "Line 6"),
        (("block = 3", "block = 1"), "rules.repeat_read.block is 1, below observe = 2"),
        (("heartbeat = false", "heartbeat = 3"), "Line 13: identity.heartbeat is a list of fields"),
    ],
)
def test_bad_input_is_told_with_its_place_and_stays_in_the_field(admin: Client, wrong: tuple[str, str], told: str):
    saved()
    text = MINE.replace(*wrong)
    answer = edit(admin, text, reason="keep me")
    html = answer.content.decode()
    assert answer.status_code == 400 and told in words(html)
    kept = re.search(r"<textarea[^>]*>\n(.*)</textarea>", html, re.S)
    assert kept and unescape(kept.group(1)) == text and 'value="keep me"' in html and 'aria-invalid="true"' in html
    assert Policy.objects.filter(name="mine").count() == 1
    assert AuditEntry.objects.get(action="write_policy").result == "bad_policy"


def test_a_check_shows_the_difference_and_saves_nothing(admin: Client):
    saved()
    html = edit(admin, MINE.replace("= 40", "= 30"), do="preview").content.decode()
    assert "fuses.max_steps was 40 → now 30" in words(html) and "Save version 2" in html
    assert Policy.objects.filter(name="mine").count() == 1 and not AuditEntry.objects.exists()


def test_who_was_slower_sees_what_changed_and_loses_nothing(admin: Client):
    saved()
    saved(MINE.replace("= 5400", "= 60"), by="m.ops", reason="shorter")
    text = MINE.replace("= 40", "= 30")
    answer = edit(admin, text)
    html = answer.content.decode()
    assert answer.status_code == 409 and Policy.objects.filter(name="mine").count() == 2
    assert "m.ops saved version 2 meanwhile" in words(html) and "shorter" in html
    assert "fuses.max_working_seconds was 5400 → now 60" in words(html)
    assert "max_steps = 30" in html and 'name="version" value="2"' in html
    edit(admin, text, version=2)
    now = policies.current("mine")
    assert now is not None and now.version == 3 and now.body["fuses"] == {"max_steps": 30, "max_working_seconds": 5400}
    assert set(AuditEntry.objects.values_list("result", flat=True)) == {"version_conflict", "ok"}


def test_an_older_version_comes_back_as_a_new_one(admin: Client):
    saved()
    saved(MINE.replace("= 40", "= 30"))
    assert "from=mine@1" in page(admin, "/policies/mine/versions/1/")
    html = page(admin, "/policies/mine/edit/?from=mine@1")
    assert "fuses.max_steps was 30 → now 40" in words(html) and "Back to mine v1." in html
    edit(admin, MINE, version=2, reason="Back to mine v1.")
    now = policies.current("mine")
    assert now is not None and (now.version, now.source) == (3, MINE)


def test_a_shipped_policy_is_copied_under_a_new_name(admin: Client):
    html = page(admin, "/policies/-/new/?copy=strict")
    assert 'value="strict-copy"' in html and "# The fail-closed supervisor" in html
    text = policy_source.source_of(Policy.objects.get(name="strict"))
    taken = admin.post("/policies/-/new/", {"name": "strict", "text": text, "do": "save"})
    assert taken.status_code == 400 and "There is a policy strict already" in taken.content.decode()
    assert admin.post("/policies/-/new/", {"name": "-x", "text": text, "do": "save"}).status_code == 400
    admin.post("/policies/-/new/", {"name": "careful", "text": text, "do": "save"})
    careful = policies.current("careful")
    assert careful is not None and careful.body == shipped("strict") and policies.origin_of(careful).word == "own"


def test_a_changed_shipped_policy_says_so_and_can_go_back(admin: Client):
    edit(admin, "[fuses]\nmax_steps = 20\n", name="strict")
    html = page(admin, "/policies/strict/")
    assert "shipped, changed here" in html and "strict@shipped" in html
    assert "# The fail-closed supervisor" in page(admin, "/policies/strict/edit/?from=strict@shipped")
    Policy.objects.filter(name="off").update(body={"note": "of an older release"})
    assert "newer one ships" in page(admin, "/policies/")


def test_a_file_takes_the_place_of_the_text_and_is_looked_at_first(admin: Client):
    saved()
    file = SimpleUploadedFile("p.toml", MINE.replace("= 40", "= 25").encode())
    html = edit(admin, "typed", file=file).content.decode()
    assert "max_steps = 25" in html and "was 40 → now 25" in words(html)
    assert Policy.objects.filter(name="mine").count() == 1
    html = edit(admin, MINE, file=SimpleUploadedFile("p.toml", b"\xff\xfe")).content.decode()
    assert "no text in UTF-8" in html and "max_steps = 40" in html


def test_the_source_comes_as_a_file(viewer: Client):
    saved()
    answer = viewer.get("/policies/mine/versions/1/toml")
    assert answer.content.decode() == MINE and answer["Content-Type"].startswith("application/toml")
    assert answer["Content-Disposition"] == 'attachment; filename="mine-v1.toml"'


def test_two_policies_stand_side_by_side(viewer: Client):
    saved()
    saved(MINE.replace("= 40", "= 30").replace("heartbeat", "pulse"))
    text = words(page(viewer, "/policies/-/compare/?a=mine@1&b=mine@2"))
    assert "3 values differ , 10 are the same." in text and "fuses.max_steps 40 30" in text
    assert "identity.heartbeat false not set" in text and "Few steps" not in text
    assert '"Few steps."' in words(page(viewer, "/policies/-/compare/?a=mine@1&b=mine&all=1"))
    assert "They hold the same." in words(page(viewer, "/policies/-/compare/?a=off&b=off@shipped"))
    assert "There is no nobody" in viewer.get("/policies/-/compare/?a=nobody").content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_an_admin_writes(role: str, request: pytest.FixtureRequest):
    client = request.getfixturevalue(role)
    saved()
    html = page(client, "/policies/mine/")
    assert "/edit/" not in html and "/-/new/" not in html and "restore" not in page(client, "/policies/mine/versions/")
    for path in ("/policies/mine/edit/", "/policies/-/new/"):
        assert client.get(path).status_code == 403
        answer = client.post(path, {"text": MINE.replace("= 40", "= 1"), "version": 1, "do": "save", "name": "other"})
        assert answer.status_code == 403 and "Ask an admin" in answer.content.decode()
    assert Policy.objects.filter(name__in=("mine", "other")).count() == 1
    assert set(AuditEntry.objects.values_list("result", flat=True)) == {"forbidden"}


def test_a_stranger_signs_in_first(client: Client):
    for path in ("/policies/", "/policies/default/", "/policies/default/edit/", "/policies/-/compare/"):
        assert client.get(path)["Location"].startswith("/sign-in/")


def test_what_policies_hold_is_only_text(viewer: Client):
    body = {
        "note": EVIL, "identity": {EVIL: [EVIL]}, "tools": {EVIL: {"poll": True}}, "escalate": {"model": EVIL},
        "approvals": [{"tool": EVIL, "when": {EVIL: EVIL}, "why": EVIL}], "compression_model": EVIL,
        "rules": {"pending": {"block": 2}},
    }  # fmt: skip
    versions.save(Policy, "evil", {"body": body}, by=EVIL, about={"reason": EVIL})
    versions.save(Policy, "evil", {"body": {**body, "note": "x"}}, by=EVIL)
    run = make_run(policy="evil", spec={"policy_body": body})
    paths = ("", "evil/", "evil/versions/", "evil/versions/1/", "-/compare/?a=evil@1&b=evil@2&all=1")
    for path in (*(f"/policies/{path}" for path in paths), f"/runs/{run.pk}/policy/"):
        html = page(viewer, path)
        assert "<script>alert" not in html and "\u202e" not in html, path


def test_a_policy_that_this_version_cannot_read_still_has_a_page(viewer: Client):
    Policy.objects.create(name="old", body={"limits": {"x": None}}, created_at=Policy.objects.first().created_at)
    html = page(viewer, "/policies/old/")
    assert "knows no" in html and "[limits]" in html and "knows no" in page(viewer, "/policies/")
