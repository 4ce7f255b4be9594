"""What a secret looks like: by the name of its key, or by its own form.

Both err on the side of leaving text alone: an agent that cannot read a line cannot edit it either. One pass for the
literal texts that secrets hold comes before any pattern, so that ordinary text pays a few microseconds per KiB.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agents.policy.known_secrets import hide_known
from agents.policy.vocabulary import Phrases

MARKER = re.compile(r"\[redacted:[a-z0-9_]+\]")

# --- by form -----------------------------------------------------------------------------------------------------


def _always(_: str) -> bool:
    return True


def _mixed(value: str) -> bool:
    """Letters and digits together, as keys have and words have not."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _no_words(value: str) -> bool:
    """`sk-loading-bar-large-animated` is a style sheet's class, not a key."""
    return any(c.isdigit() or c.isupper() for c in value) or max(map(len, value.split("-"))) >= 20


def _real_password(value: str) -> bool:
    return not is_placeholder(value)


@dataclass(frozen=True, slots=True)
class _Form:
    """`hints` are literal texts, one of which every match holds; group 1, if any, is the secret, else all of it."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = _always
    any_case: bool = False


# No pattern may start anew inside what it has just run through: the text is anybody's, and a line of a megabyte would
# then hold up the worker. Hence the look-behinds, and bounds on whatever can fail late. A look-behind stands after the
# literal that it guards where it can: a pattern that begins with a literal is searched for ten times faster.
_FORMS = (
    _Form("jwt", ("eyJ",), re.compile(r"eyJ(?<![\w-]eyJ)[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]*")),
    _Form("api_key", ("sk-",), re.compile(r"sk-(?<![\w-]sk-)[A-Za-z0-9_-]{16,}"), _no_words),
    _Form("api_key", ("k_live_", "k_test_"), re.compile(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    _Form("aws_key", ("AKIA", "ASIA"), re.compile(r"(?<![A-Za-z0-9])A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])")),
    _Form("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}")),
    _Form("github_token", ("github_pat_",), re.compile(r"\bgithub_pat_\w{20,}")),
    _Form("gitlab_token", ("glpat-",), re.compile(r"\bglpat-[\w-]{16,}")),
    _Form("slack_token", ("xox", "xapp-"), re.compile(r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"), _mixed),
    _Form("slack_token", ("hooks.slack.com",), re.compile(r"hooks\.slack\.com/services/(T\w+/B\w+/\w+)")),
    _Form("google_key", ("AIza",), re.compile(r"\bAIza[\w-]{30,}")),
    _Form("google_token", ("ya29.",), re.compile(r"\bya29\.[\w-]{20,}")),
    _Form("npm_token", ("npm_",), re.compile(r"\bnpm_[A-Za-z0-9]{30,}"), _mixed),
    _Form("huggingface_token", ("hf_",), re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    _Form("pypi_token", ("pypi-AgE",), re.compile(r"\bpypi-AgE[\w-]{30,}")),
    _Form(
        "password",
        ("://",),
        re.compile(r"://[^\s/:@\"'<>]*:([^\s/\"'<>]+)@"),
        _real_password,
    ),
    _Form(
        "authorization",
        ("authorization",),
        re.compile(
            r"(?i)authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:basic|bearer|token|digest|apikey)\s+([^\s\"',;\\]{6,})"
        ),
        _real_password,
        any_case=True,
    ),
    _Form("bearer", ("bearer ",), re.compile(r"(?i)\bbearer\s+([\w.~+/-]{16,}=*)"), _mixed, any_case=True),
    _Form(
        "cookie",
        ("cookie:",),
        re.compile(r"(?i)\b(?:set-)?cookie:[ \t]*([\w.-]+=[^\r\n\"']{8,})"),
        any_case=True,
    ),
)


def hide_in_text(text: str) -> tuple[str, dict[str, int]]:
    """The text with typed markers in place of secrets, and how many of each kind."""
    hidden: dict[str, int] = {}
    text = hide_known(text, hidden)
    found = _HINTS.found(text.lower())
    if _PEM in found:
        text = _hide_private_keys(text, hidden)
    for form in _FORMS if _FORM in found else ():
        # In any case of letters so far; most forms want their own.
        for hint in form.hints:
            if hint.lower() in found and (form.any_case or hint in text):
                text = _hide_form(form, text, hidden)
                break
    cores = [core for core in _CORES if core in found]
    if cores:
        text = _hide_assignments(text, cores, hidden)
    return text, hidden


_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[\w+/=\\\s:,.()-]*")
_PEM_DATA = re.compile(r"[A-Za-z0-9+/=]{24}")


def _hide_private_keys(text: str, hidden: dict[str, int]) -> str:
    """Blocks from BEGIN to END, also with escaped line ends; without an END, as in output that was cut, all data."""
    pieces, done = [], 0
    for begin in _PEM_BEGIN.finditer(text):
        following = text.find("-----BEGIN ", begin.end())
        limit = following if following >= 0 else len(text)
        end = _PEM_END.search(text, begin.end(), limit)
        body = _PEM_BODY.match(text, begin.end(), end.start() if end else limit)
        if body is None or (end and body.end() != end.start()) or not (end or _PEM_DATA.search(body[0][:400])):
            continue
        pieces += [text[done : begin.start()], "[redacted:private_key]"]
        done = end.end() if end else body.end()
        hidden["private_key"] = hidden.get("private_key", 0) + 1
    return "".join((*pieces, text[done:])) if pieces else text


def _hide_form(form: _Form, text: str, hidden: dict[str, int]) -> str:
    def replace(match: re.Match[str]) -> str:
        group = 1 if match.re.groups else 0
        if not form.accepts(match[group]) or MARKER.match(match[group]):
            return match[0]
        hidden[form.kind] = hidden.get(form.kind, 0) + 1
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return f"{match[0][:start]}[redacted:{form.kind}]{match[0][end:]}"

    return form.pattern.sub(replace, text)


# --- by name -----------------------------------------------------------------------------------------------------

_CORES = ("pass", "pwd", "secret", "token", "key", "authorization", "cookie")
# All that is looked for before any pattern, in lower case. What stands for itself alone is found under its own name.
_FORM, _PEM = "a form", "a private key"
_FORM_HINTS = {hint.lower() for form in _FORMS for hint in form.hints}
_HINTS = Phrases(
    {
        **{hint: (hint,) for hint in _FORM_HINTS.union(_CORES)},
        _FORM: _FORM_HINTS,
        _PEM: ("private key-", "private key block-"),
    }
)
_BEFORE_KEY = ("api", "secret", "access", "private", "account", "signing", "encryption", "master")
_KEY_ENDS = ("apikey", "secretkey", "accesskey", "accountkey", "signingkey", "encryptionkey", "masterkey")
_TOKENS_OF_NO_SECRET = frozenset(
    re.findall(
        r"\w+",
        "page next prev previous sync continuation cursor pagination resume change delta skip start end stop pad eos "
        "bos unk mask sep cls special per max min last first current new peek lookahead csrf xsrf continue",
    )
)
_NO_VALUES = frozenset(
    re.findall(
        r"\w+",
        "none null nil true false undefined string str text bytes any bool int number object required optional "
        "password passwd passphrase pwd secret token key api_key apikey hidden masked removed example changeme todo",
    )
)
_CAMEL = re.compile(r"([a-z0-9])([A-Z])")
_PLACEHOLDER = re.compile(r"[$<{%].*|[*xX.•_-]+|.*\$\{.*|\[redacted:.*|(?i:your[_-].*|example.*)", re.DOTALL)
_CODE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+\S*|.*[(\[{].*|[~.]{0,2}/.*|https?:.*", re.DOTALL)

# From the telling part of a name to the end of its value; the part before it is looked up only on a match.
_ASSIGNED = re.compile(
    r"(?P<rest>\w{1,50})(?P<nq>\\*[\"']?)(?P<sep>\s{0,4}(?:=>|:=|=|:)\s{0,4})"
    r"(?:(?P<vq>\\*[\"'])(?P<quoted>(?:\\.|[^\\\n]){0,4096}?)(?P=vq)|(?P<bare>[^\s\"'`,;)}\]<>&|\\]{1,160}))"
)
_NAME_BEFORE = re.compile(r"[\w.-]*\Z")
_NAME_REST = re.compile(r"\w{1,50}")
_BARE_REST = re.compile(r"[^\s\"'`,;)}\]<>&|\\]*")


def _hide_assignments(text: str, cores: Sequence[str], hidden: dict[str, int]) -> str:
    """Looks only where a telling word stands: a pattern over the whole text would cost ten times as much."""
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when lowered, and positions would be off
        low = "".join(c if len(c.lower()) > 1 else c.lower() for c in text)
    done, pieces = 0, []
    for at in sorted(at for core in cores for at in _places(low, core)):
        name, kind = _name_at(text, at) if at >= done else ("", None)
        match = _ASSIGNED.match(text, at) if kind is not None else None
        if match is None or kind is None or not _assigns_secret(kind, name, match):
            continue
        group = "bare" if match["bare"] is not None else "quoted"
        # A bare number after a quoted key is JSON: the marker is text and needs the same quotes to stay JSON.
        quote = match["nq"] if group == "bare" else ""
        pieces += [text[done : match.start(group)], f"{quote}[redacted:{kind}]{quote}"]
        rest = _BARE_REST.match(text, match.end()) if group == "bare" else None
        done = rest.end() if rest else match.end(group)
        hidden[kind] = hidden.get(kind, 0) + 1
    return "".join((*pieces, text[done:])) if pieces else text


def _name_at(text: str, at: int) -> tuple[str, str | None]:
    """The whole name of which a telling word at this place is a part, and the kind of secret it names."""
    before, rest = _NAME_BEFORE.search(text, max(0, at - 64), at), _NAME_REST.match(text, at)
    name = (before[0] if before else "") + (rest[0] if rest else "")
    return name, kind_of_name(name)


def _places(low: str, core: str) -> Iterator[int]:
    at = low.find(core)
    while at >= 0:
        # Almost every JSON document has a plain "key", so that one is looked at first.
        if core != "key" or low[max(0, at - 12) : at].rstrip("_-").endswith(_BEFORE_KEY):
            yield at
        at = low.find(core, at + len(core))


@lru_cache(maxsize=2048)
def kind_of_name(name: str) -> str | None:
    """`password`, `api_key`, `secret`, ... if a key of this name holds a secret; None for all others."""
    words = [w for w in re.split(r"[^a-z0-9]+", _CAMEL.sub(r"\1_\2", name).lower()) if w]
    if not words:
        return None
    last, joined = words[-1], "".join(words)
    if joined.endswith(("password", "passwd", "passphrase")) or last == "pwd" or (last == "pass" and len(words) > 1):
        return "password"
    if joined.endswith("privatekey"):
        return "private_key"
    if joined.endswith(_KEY_ENDS):
        return "api_key"
    if last in ("secret", "clientsecret"):
        return "secret"
    if last == "token" or joined.endswith(("accesstoken", "authtoken", "refreshtoken")):
        return None if len(words) > 1 and words[-2] in _TOKENS_OF_NO_SECRET else "token"
    if last == "authorization":
        return "authorization"
    return "cookie" if joined in ("cookie", "setcookie") else None


def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one: `${PASSWORD}`, `<your key>`, `****`, or is hidden already."""
    value = value.strip()
    return not value or value.lower() in _NO_VALUES or _PLACEHOLDER.fullmatch(value) is not None


def hide_by_key(name: str, value: Any) -> str | None:
    """The kind of secret if a structured value under this key must be hidden as a whole, else None."""
    kind = kind_of_name(name) if isinstance(value, (str, int, Sequence)) and len(name) <= 128 else None
    if kind is None or isinstance(value, (bool, Mapping)):
        return None
    if isinstance(value, str):
        return kind if _secret_text(kind, value) else None
    if isinstance(value, int):
        return kind if kind == "password" else None
    texts = [item for item in value if isinstance(item, str)]
    return kind if texts and len(texts) == len(value) and any(_secret_text(kind, t) for t in texts) else None


def _secret_text(kind: str, value: str) -> bool:
    if is_placeholder(value):
        return False
    if kind == "token":
        return " " not in value.strip() and (any(c.isdigit() for c in value) or len(value) >= 16)
    return True


def _assigns_secret(kind: str, name: str, match: re.Match[str]) -> bool:
    """Whether `name sep value` in running text, code or a configuration file gives away a secret."""
    is_quoted = match["quoted"] is not None
    value, name_quote, sep = match["quoted" if is_quoted else "bare"], match["nq"], match["sep"]
    if is_placeholder(value):
        return False
    if name_quote:  # JSON or a literal mapping: the key speaks for itself
        return _secret_text(kind, value) if is_quoted else kind == "password" and value.isdigit()
    if is_quoted:
        fits = " " not in value and len(value) >= 4
        return fits and (kind != "token" or (_mixed(value) and len(value) >= 8) or len(value) >= 20)
    if _CODE.fullmatch(value):
        return False
    if name.isupper() and sep == "=":  # an environment file or an export
        return len(value) >= 3 and (kind != "token" or _mixed(value) or len(value) >= 16)
    if kind == "password" and value.isdigit():
        return len(value) >= 4
    return (_mixed(value) and len(value) >= 6) or (len(value) >= 24 and value.isalnum())
