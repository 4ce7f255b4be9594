"""One's own account: where one is signed in, one's tokens for machines, and the password."""

from datetime import timedelta
from typing import Any

from django.contrib import auth, messages
from django.contrib.auth import password_validation
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from control.accounts import audit, sign_ins, tokens
from control.accounts.models import Role, Token, User
from control.accounts.roles import NEEDED
from control.dashboard import rooms

TERMS = {"1": "a day", "7": "a week", "30": "30 days", "90": "90 days", "365": "a year"}
MOST_TOKENS = 50


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _context(request: HttpRequest) -> dict[str, Any]:
    user = _user(request)
    roles = [role for role in Role if user.as_role.allows(role)]
    return {
        "section": "account",
        "person": user,
        "sign_ins": sign_ins.listed(user),
        "here": request.session.session_key,
        "tokens": user.tokens.order_by("-created_at")[:MOST_TOKENS],
        "roles": roles,
        "terms": list(TERMS.items()),
        "verbs": [verb for verb, needed in NEEDED.items() if verb != "view" and user.as_role.allows(needed)],
        "has_password": user.has_usable_password(),
        "now": timezone.now(),
    }


@login_required
@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    if key := request.session.session_key:
        # So that the list is whole also on the first page that somebody opens.
        sign_ins.note(_user(request), key, request, timezone.now())
    return render(request, "accounts/account.html", _context(request))


@login_required
@require_POST
def end_session(request: HttpRequest) -> HttpResponse:
    """End one session of one's own, or with `all=1` every one, this one too."""
    user = _user(request)
    name = user.get_username()
    if request.POST.get("all"):
        many = sign_ins.end_all(user)
        audit.record(request, "sign_out_everywhere", f"user:{name}", after={"sessions": many})
        auth.logout(request)
        messages.success(request, "You are signed out everywhere.")
        return redirect("sign_in")
    key = sign_ins.end(user, request.POST.get("session", ""))
    audit.record(request, "end_session", f"user:{name}", result="ok" if key else "unknown_session")
    if key and key == request.session.session_key:
        auth.logout(request)
        return redirect("sign_in")
    return rooms.told(request, "Signed out there." if key else "That session has ended already.", "account")


@login_required
@never_cache
@require_POST
def new_token(request: HttpRequest) -> HttpResponse:
    """A token of one's own: its secret is in this one answer and nowhere else."""
    user, post = _user(request), request.POST
    name = post.get("name", "").replace("\x00", "").strip()
    role, term, scope = post.get("role", ""), post.get("term", ""), post.getlist("scope")
    context = _context(request)
    problem = ""
    if not 0 < len(name) <= 100 or not name.isprintable():
        problem = "A name of 1 to 100 characters says what the token is for."
    elif role not in context["roles"] or term not in TERMS or not set(scope) <= set(context["verbs"]):
        problem = "Choose a role that you have, a term, and verbs that the role covers."
    elif not all(Role(role).allows(NEEDED[verb]) for verb in scope):
        problem = f"The role {role} does not cover all of the chosen verbs. Choose fewer, or a higher role."
    elif user.tokens.filter(revoked_at=None).count() >= MOST_TOKENS:
        problem = f"You have {MOST_TOKENS} tokens. Revoke some first."
    secret = ""
    if not problem:
        now = timezone.now()
        more = {"user": user, "scope": sorted(scope), "expires_at": now + timedelta(days=int(term))}
        try:
            with transaction.atomic():
                _, secret = Token.issue(name, Role(role), now, **more)
        except IntegrityError:
            problem = f"There is a token {name} already, of you or somebody else. Choose another name."
    after = {"role": role, "scope": sorted(scope), "days": term}
    target = f"token:{name[:100]}"
    audit.record(request, "create_token", target, after=after, result="bad_token" if problem else "ok")
    given = {"name": name, "role": role, "term": term, "scope": scope} if problem else {}
    context = {**_context(request), "problem": problem, "secret": secret, "made": name, "given": given}
    return render(request, "accounts/account.html", context, status=400 if problem else 201)


@login_required
@require_POST
def revoke_token(request: HttpRequest) -> HttpResponse:
    wanted = request.POST.get("token", "")
    known = wanted.isascii() and wanted.isdigit() and len(wanted) < 18
    token = _user(request).tokens.filter(pk=int(wanted)).first() if known else None
    done = token is not None and tokens.revoke(token)
    target = f"token:{token.name}" if token else "token:(unknown)"
    audit.record(request, "revoke_token", target, result="ok" if done else "unchanged" if token else "unknown_token")
    return rooms.told(
        request, "Revoked. It opens nothing any more." if done else "There was nothing to revoke.", "account"
    )


@login_required
@require_POST
def password(request: HttpRequest) -> HttpResponse:
    """Set it, or change it knowing the old one; every other session ends."""
    user = _user(request)
    old, new = request.POST.get("old", "")[:4096], request.POST.get("new", "")[:4096]
    problem = ""
    if user.has_usable_password() and not user.check_password(old):
        problem = "The present password is another one."
    else:
        try:
            password_validation.validate_password(new, user)
        except ValidationError as error:
            problem = " ".join(error.messages)
    audit.record(request, "change_password", f"user:{user.get_username()}", result="refused" if problem else "ok")
    if problem:
        return rooms.told(request, problem, "account", good=False)
    user.set_password(new)
    user.save(update_fields=["password"])
    sign_ins.end_others(user, request.session.session_key or "")
    auth.update_session_auth_hash(request, user)
    return rooms.told(request, "Changed. Every other session has ended.", "account")
