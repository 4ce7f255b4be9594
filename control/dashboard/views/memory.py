"""The page of what one agent remembers: plain forms that add, change, switch off and delete notes."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agents.policy.memory import LONGEST_NOTE
from control.accounts import audit
from control.accounts.roles import Actor, of_request
from control.dashboard.views.verbs import FORBIDDEN
from control.fleet import agents, memory

DONE = {"add": "Kept.", "save": "Saved.", "disable": "Switched off.", "enable": "Switched on.", "delete": "Deleted."}


@login_required
def page(request: HttpRequest, name: str) -> HttpResponse:
    """Every note as it stands. Runs that start from now on read what is switched on."""
    if "\x00" in name or agents.current(name) is None:
        raise Http404("There is no agent of this name.")
    if request.method == "POST":
        return _act(request, name)
    context = {
        "agent": name,
        "notes": memory.listed(name),
        "longest": LONGEST_NOTE,
        "now": timezone.now(),
        "section": "memory",
    }
    return render(request, "fleet/memory.html", context)


def _act(request: HttpRequest, name: str) -> HttpResponse:
    actor = of_request(request)
    verb, note = request.POST.get("do", ""), request.POST.get("note", "")
    target = f"memory:{note[:60]}" if note else f"agent:{name[:80]}"
    if actor is None or not actor.may("write_memory"):
        audit.record(request, "write_memory", target, result="forbidden")
        context = {"title": "Not allowed", "text": FORBIDDEN.text, "back": request.path, "back_word": "Back"}
        return render(request, "problem.html", context, status=403)
    try:
        _do(request, name, verb, note, actor)
    except memory.Refused as error:
        audit.record(request, "write_memory", target, result=error.code)
        messages.error(request, str(error))
    else:
        audit.record(request, "write_memory", target, reason=verb[:20], result="ok")
        messages.success(request, DONE[verb])
    return redirect("memory", name=name)


def _do(request: HttpRequest, name: str, verb: str, note: str, actor: Actor) -> None:
    text = request.POST.get("text", "")
    version = request.POST.get("version", "")
    expected = int(version) if version.isascii() and version.isdigit() and len(version) < 9 else None
    match verb:
        case "add":
            memory.add(name, text, by=actor.name)
        case "save":
            memory.change(name, note, {"text": text}, by=actor.name, expected=expected)
        case "disable" | "enable":
            memory.change(name, note, {"disabled": verb == "disable"}, by=actor.name)
        case "delete":
            memory.delete(name, note)
        case _:
            raise memory.Refused("bad_verb", "Add, save, disable, enable or delete a note.")
