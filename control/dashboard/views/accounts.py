"""Signing in, by password or by a link that works once; signing out; the theme."""

from datetime import datetime

from django.conf import settings
from django.contrib import auth
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from agents.events import stamp
from control import plain
from control.accounts import audit, links, oidc, throttle
from control.accounts.models import Role, User
from control.accounts.roles import Actor, address
from control.dashboard.context import THEMES

BACKEND = "django.contrib.auth.backends.ModelBackend"
YEAR_S = 365 * 24 * 3600


def _next(request: HttpRequest) -> str:
    """Where to go afterwards; only within this site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    if url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return wanted
    return reverse("fleet")


@never_cache
def sign_in(request: HttpRequest) -> HttpResponse:
    """The password form. A wrong name and a wrong password look the same."""
    if request.user.is_authenticated:
        return redirect(_next(request))
    name, problem, status = "", "", 200
    held: throttle.Held | None = None
    if request.method == "POST":
        name = request.POST.get("username", "").replace("\x00", "").strip()[:150]
        where, now = address(request), timezone.now()
        held = throttle.begin(name, where, now)
        user = None if held else auth.authenticate(request, username=name, password=_password(request))
        if user is not None:
            throttle.passed(name, where)
            auth.login(request, user)
            audit.record(request, "sign_in", f"user:{user.get_username()}", reason="password")
            return redirect(_next(request))
        status = 429 if held else 400
        if held is None:
            problem = "This name and password do not belong together. Check both, or ask for a one-time link."
            held = _note_failure(request, name, now)
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    context = {"problem": problem, "username": name, "next": wanted, "held": held, "oidc": settings.OIDC}
    response = render(request, "accounts/sign_in.html", context, status=status)
    if held is not None:
        response["Retry-After"] = str(max(1, round((held.until - timezone.now()).total_seconds())))
    return response


def _password(request: HttpRequest) -> str:
    return request.POST.get("password", "")[:4096]


def _note_failure(request: HttpRequest, name: str, now: datetime) -> throttle.Held | None:
    """One row for each try that was looked at, one more where a wait begins; and that wait. A name that nobody has is
    not kept: it may be a password in the wrong field."""
    target = f"user:{name}" if User.objects.filter(username=name).exists() else "user:(unknown)"
    actor = Actor(name="nobody", role=Role.VIEWER, address=address(request))
    audit.record(actor, "sign_in", target, reason="password", result="bad_password")
    held = throttle.waits(name, address(request), now)
    if held is not None:
        after = {"for": held.kind, "until": stamp(held.until)}
        audit.record(actor, "sign_in", target, reason="password", after=after, result="throttled")
    return held


@never_cache
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """A printed link signs in as soon as it is opened, and only the first time."""
    if request.method == "HEAD":
        # Link checkers look without opening; they must not use the link up.
        return HttpResponse()
    user = links.redeem(token)
    if user is None:
        context = {
            "title": "This link has been used or is too old",
            "text": "A sign-in link works once, for 15 minutes. `manage.py login_link` prints a new one.",
            "back": reverse("sign_in"),
            "back_word": "Sign in with a password",
        }
        return render(request, "problem.html", context, status=410)
    auth.login(request, user, backend=BACKEND)
    audit.record(request, "sign_in", f"user:{user.get_username()}", reason="link")
    return redirect(_next(request))


@never_cache
def oidc_begin(request: HttpRequest) -> HttpResponse:
    """To the provider, where one is set up."""
    if settings.OIDC is None:
        raise Http404
    if request.user.is_authenticated:
        return redirect(_next(request))
    try:
        return oidc.begin(request, settings.OIDC, f"{settings.CONSOLE_URL}{reverse('oidc_back')}", _next(request))
    except oidc.Refused as refused:
        return _oidc_refused(request, refused)


@never_cache
def oidc_back(request: HttpRequest) -> HttpResponse:
    """Back from the provider, with a code that is exchanged for who it is."""
    if settings.OIDC is None:
        raise Http404
    wanted = oidc.wanted(request.session)
    try:
        user = oidc.finish(request, settings.OIDC)
    except oidc.Refused as refused:
        return _oidc_refused(request, refused)
    auth.login(request, user, backend=BACKEND)
    audit.record(request, "sign_in", f"user:{user.get_username()}", reason="oidc", after={"role": user.role})
    return redirect(wanted or "fleet")


def _oidc_refused(request: HttpRequest, refused: oidc.Refused) -> HttpResponse:
    actor = Actor(name="nobody", role=Role.VIEWER, address=address(request))
    audit.record(actor, "sign_in", f"user:{refused.name}", reason="oidc", result=refused.code)
    context = {
        "title": "You are not signed in", "text": plain.visible(refused.text), "back": reverse("sign_in"),
        "back_word": "To the sign-in page",
    }  # fmt: skip
    return render(request, "problem.html", context, status=refused.status)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        audit.record(request, "sign_out", f"user:{request.user.get_username()}")
    auth.logout(request)
    return redirect("sign_in")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Dark, light or as the system; kept in a cookie so that the first paint is right already."""
    return _remembered(request, "theme", THEMES)


@require_POST
def prose(request: HttpRequest) -> HttpResponse:
    """Answers of models as they were written, or with their Markdown laid out."""
    return _remembered(request, "prose", ("written", "laid"))


def _remembered(request: HttpRequest, name: str, choices: tuple[str, ...]) -> HttpResponse:
    response = HttpResponseRedirect(_next(request))
    wanted = request.POST.get(name, "")
    if wanted in choices:
        response.set_cookie(name, wanted, max_age=YEAR_S, httponly=False, samesite="Lax", secure=settings.SECURE_TLS)
    return response
