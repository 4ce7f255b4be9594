"""Settings, read once from the environment, loudly: a wrong value stops the start and says what to do."""

import os
import re
import secrets
from decimal import Decimal
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from control.accounts import oidc_config
from control.fleet import day_limits

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("DATA_DIR") or BASE_DIR / "var").resolve()
DATA_DIR.mkdir(parents=True, exist_ok=True)

DATABASE_URL = os.environ.get("DATABASE_URL", "")
REDIS_URL = os.environ.get("REDIS_URL", "")
# Before every key and channel in Redis: several installations may share one server, or one database of it.
REDIS_PREFIX = os.environ.get("REDIS_PREFIX") or "pilothouse"
if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", REDIS_PREFIX):
    raise ImproperlyConfigured("REDIS_PREFIX must be 1 to 60 letters, digits, '.', '_' or '-', e.g. staging")
EMBEDDED = not DATABASE_URL and not REDIS_URL
HOST = os.environ.get("HOST", "127.0.0.1")
try:
    PORT = int(os.environ.get("PORT", "8000"))
except ValueError as error:
    raise ImproperlyConfigured("PORT must be a number, e.g. PORT=8000") from error


def _words(name: str) -> list[str]:
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def _secret_key() -> str:
    """SECRET_KEY, or, embedded, one that is made on the first start and kept in DATA_DIR (mode 600)."""
    given = os.environ.get("SECRET_KEY")
    if given:
        return given
    if not EMBEDDED:
        raise ImproperlyConfigured("Set SECRET_KEY to a long random string: DATABASE_URL and REDIS_URL require it.")
    path = DATA_DIR / "secret_key"
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(48))
    except FileExistsError:
        pass
    return path.read_text()


SECRET_KEY = _secret_key()
DEBUG = False
ALLOWED_HOSTS = _words("ALLOWED_HOSTS") or ["127.0.0.1", "localhost", "[::1]"]
TRUSTED_ORIGINS = _words("TRUSTED_ORIGINS") or [f"http://127.0.0.1:{PORT}", f"http://localhost:{PORT}"]
CSRF_TRUSTED_ORIGINS = TRUSTED_ORIGINS
SECURE_TLS = all(origin.startswith("https://") for origin in TRUSTED_ORIGINS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_TLS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Where links in alerts lead: this console, and runbooks of one's own (RUNBOOK_URL/<rule>) in place of ours.
CONSOLE_URL = (os.environ.get("CONSOLE_URL") or TRUSTED_ORIGINS[0]).rstrip("/")
RUNBOOK_URL = os.environ.get("RUNBOOK_URL", "").strip()
for _name, _url in (("CONSOLE_URL", CONSOLE_URL), ("RUNBOOK_URL", RUNBOOK_URL)):
    if _url and not re.match(r"https?://[^\s/]+", _url):
        raise ImproperlyConfigured(f"{_name} must be an address like https://console.example.org; it is {_url!r}.")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "ninja",
    "control.accounts",
    "control.fleet",
    "control.runs",
    "control.incidents",
    "control.dashboard",
    "control.api",
]
MIDDLEWARE = [
    "control.api.errors.JsonErrors",
    "django.middleware.security.SecurityMiddleware",
    "control.dashboard.csp.ContentSecurityPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "control.accounts.sign_ins.NoteSignIns",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "control.urls"
ASGI_APPLICATION = "control.asgi.application"
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "fleet"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "control.dashboard.context.viewer",
            ],
        },
    }
]
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "staticfiles"
STATIC_ROOT.mkdir(exist_ok=True)
WHITENOISE_USE_FINDERS = True

if DATABASE_URL:
    DATABASES = {"default": dj_database_url.parse(DATABASE_URL, conn_max_age=600, conn_health_checks=True)}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(DATA_DIR / "pilothouse.sqlite3"),
            "CONN_MAX_AGE": 600,
            # IMMEDIATE: a writer waits for its turn at BEGIN instead of failing when it upgrades its lock.
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
            },
            "TEST": {"NAME": str(DATA_DIR / "test.sqlite3")},
        }
    }
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en-us"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Signing in at an OpenID Connect provider (OIDC_ISSUER and others, docs/running.md); None: by password and link alone.
OIDC = oidc_config.read(os.environ)

# Where runs may work, and where models may live.
WORKSPACE_ROOTS = [Path(word).expanduser().resolve() for word in _words("WORKSPACE_ROOTS")] or (
    [DATA_DIR, Path.home()] if EMBEDDED else [DATA_DIR]
)
CREDENTIALS_FILE = os.environ.get("CREDENTIALS_FILE", "")
ALLOWED_BASE_URLS = _words("ALLOWED_BASE_URLS")

# The model of a run that names none: a real provider by OPENAI_BASE_URL, OPENAI_API_KEY and MODEL, else, embedded, the
# drill server. The key itself is no setting: it is read when it is used.
DRILL_URL_GIVEN = bool(os.environ.get("DRILL_URL"))
# Where `up` has started the drill server this time, for commands beside it.
DRILL_URL_FILE = DATA_DIR / "drill_url"
DRILL_URL = (
    os.environ.get("DRILL_URL")
    or (DRILL_URL_FILE.read_text().strip() if DRILL_URL_FILE.exists() else "")
    or "http://127.0.0.1:8089/v1"
)
MODEL_BASE_URL_GIVEN = bool(os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_KEY"))
MODEL_BASE_URL = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
MODEL = os.environ.get("MODEL", "")


def _agent_limits() -> dict[str, Decimal]:
    """AGENT_MAX_TURNS, _STEPS, _TOKENS, _COST and _SECONDS: fuses for any run, by the name of the fuse."""
    found: dict[str, Decimal] = {}
    for name in ("max_turns", "max_steps", "max_tokens", "max_cost", "max_seconds"):
        text = os.environ.get(f"AGENT_{name.upper()}", "").strip()
        if not text:
            continue
        try:
            value = Decimal(text)
            good = value.is_finite() and value > 0 and (name in ("max_cost", "max_seconds") or value == int(value))
        except ArithmeticError:
            good = False
        if not good:
            raise ImproperlyConfigured(f"AGENT_{name.upper()} must be a number above 0, e.g. 50; it is {text!r}.")
        found[name] = value
    return found


AGENT_LIMITS = _agent_limits()


def _day_limits(whose: str) -> dict[str, Decimal]:
    """AGENT_MAX_COST_PER_DAY and _TOKENS_PER_DAY: for each agent and UTC day; FLEET_...: for all of them together."""
    given = {name: os.environ.get(f"{whose}_{name.upper()}", "").strip() or None for name in day_limits.DAY_LIMITS}
    try:
        return day_limits.read(given, f"{whose}_ in the environment")
    except day_limits.BadDayLimit as error:
        raise ImproperlyConfigured(str(error)) from error


AGENT_DAY_LIMITS = _day_limits("AGENT")
FLEET_DAY_LIMITS = _day_limits("FLEET")

# Logs on standard error: lines for people, or one JSON object a line for machines.
LOG_FORMAT = os.environ.get("LOG_FORMAT") or "human"
if LOG_FORMAT not in ("human", "json"):
    raise ImproperlyConfigured("LOG_FORMAT must be human or json")
LOG_LEVEL = (os.environ.get("LOG_LEVEL") or "WARNING").upper()
if LOG_LEVEL not in ("DEBUG", "INFO", "WARNING", "ERROR"):
    raise ImproperlyConfigured("LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR")

# Traces go out where the standard variables of OpenTelemetry say; the exporter reads all others of them itself.
TRACES_ON = bool(
    os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
) and (os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true")

# Leases: 15 s, renewed every 5 s, 3 attempts; a person may take 10 minutes before a run is parked.
LEASE_SECONDS = float(os.environ.get("LEASE_SECONDS", "15"))
LEASE_RENEW_SECONDS = LEASE_SECONDS / 3
MAX_ATTEMPTS = 3
PARK_AFTER_SECONDS = float(os.environ.get("PARK_AFTER_SECONDS", "600"))
COMMAND_POLL_SECONDS = 0.5
# Sockets: a heartbeat this often, at which the session behind it is looked at again.
HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_SECONDS", "10"))


def _number(name: str, default: str, least: int) -> int:
    text = os.environ.get(name, "").strip() or default
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number, at least {least}; it is {text!r}.")
    return int(text)


# How many runs may be at work at once: in one worker, and in the whole fleet (0: as many as the workers take).
WORKER_MAX_RUNS = _number("WORKER_MAX_RUNS", os.environ.get("WORKER_CAPACITY") or "200", 1)
FLEET_MAX_RUNNING = _number("FLEET_MAX_RUNNING", "0", 0)
# A worker that is asked to go lets the calls that run end for this long, then cuts them off.
DRAIN_SECONDS = _number("DRAIN_SECONDS", "25", 0)
# The desk tells of a run that waits for a person or for quota after so many minutes.
ALERT_WAITING_MINUTES = _number("ALERT_WAITING_MINUTES", "15", 1)
BUS_SOCKET = DATA_DIR / "bus.sock"
ARTIFACT_CAP_BYTES = 64 * 1024 * 1024
