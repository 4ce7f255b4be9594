"""Signing in, by password or by a link that works once; signing out; the theme."""

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from control.accounts import audit, links
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
    problem = ""
    name = ""
    if request.method == "POST":
        name = request.POST.get("username", "").strip()[:150]
        user = auth.authenticate(request, username=name, password=request.POST.get("password", "")[:4096])
        if user is not None:
            auth.login(request, user)
            audit.record(request, "sign_in", f"user:{user.get_username()}", reason="password")
            return redirect(_next(request))
        problem = "This name and password do not belong together. Check both, or ask for a one-time link."
    status = 400 if problem else 200
    context = {"problem": problem, "username": name, "next": request.POST.get("next") or request.GET.get("next") or ""}
    return render(request, "accounts/sign_in.html", context, status=status)


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


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        audit.record(request, "sign_out", f"user:{request.user.get_username()}")
    auth.logout(request)
    return redirect("sign_in")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Dark, light or as the system; kept in a cookie so that the first paint is right already."""
    response = HttpResponseRedirect(_next(request))
    wanted = request.POST.get("theme", "")
    if wanted in THEMES:
        response.set_cookie(
            "theme", wanted, max_age=YEAR_S, httponly=False, samesite="Lax", secure=settings.SECURE_TLS
        )  # fmt: skip
    return response
