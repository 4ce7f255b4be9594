"""The page that shows the pictures: `docs/screenshots.md`, each page in dark and light, wide and on a phone."""

from collections.abc import Iterable

# Name of a picture -> what it shows, in the order of the page.
TITLES = {
    "fleet": "The fleet",
    "fleet-sorted": "The fleet by cost",
    "run": "A run that asks something",
    "stream": "A run whose model is writing",
    "run-laid-out": "A run with a tool's colours and an answer laid out",
    "tripped": "A run that its guard has stopped",
    "interrupt": "What an interrupt will do, before it is done",
    "inbox": "Inbox",
    "start": "Start a run",
    "incidents": "Incidents",
    "incident": "An incident",
    "incident-rules": "Runbook",
    "postmortem": "A postmortem",
    "replay": "A replay, where it parts from the original",
    "alert-routes": "Alert routes",
    "alert-route-new": "A new alert route",
    "example": "The guided example",
    "example-run": "The guided example, after its night",
    "example-postmortem": "The postmortem of that night",
    "policies": "Policies",
    "policy": "A policy",
    "policy-default": "The shipped policy",
    "policy-versions": "Versions of a policy",
    "policy-edit": "Edit a policy",
    "policy-compare": "Two policies beside each other",
    "backtest": "Backtests",
    "backtest-result": "How a backtest comes out",
    "suggest": "Limits that healthy runs suggest",
    "agents": "Agents",
    "agent": "An agent",
    "agent-versions": "Versions of an agent",
    "agent-edit": "Edit an agent",
    "agent-compare": "Two agents beside each other",
    "schedules": "Schedules",
    "schedule": "A schedule",
    "schedule-new": "A new schedule",
    "workers": "Workers",
    "credentials": "Credentials",
    "audit": "Audit",
    "account": "Account",
    "sign-in": "Sign in",
    "styleguide": "Style guide",
}
LOOKS = (("dark", "1440"), ("light", "1440"), ("dark", "390"), ("light", "390"))


def file_of(name: str, theme: str, size: str) -> str:
    return f"{name}-{theme}-{size}.webp"


def page(names: Iterable[str], folder: str) -> str:
    """Markdown with every picture; a name without a title is an error."""
    known = set(names)
    if missing := known - TITLES.keys():
        raise KeyError(f"give these pictures a title: {sorted(missing)}")
    lines = [
        "# What it looks like",
        "",
        "Made by `python -m tests.e2e.shots docs/screenshots`, which plays a night on a whole console and photographs",
        "it. Every page in the dark and the light theme, 1440 and 390 pixels wide.",
    ]
    for name in (name for name in TITLES if name in known):
        lines += ["", f"## {TITLES[name]}", ""]
        for size, width in (("1440", 410), ("390", 200)):
            shown = " ".join(
                f'<img src="{folder}/{file_of(name, theme, size)}" width="{width}" alt="{TITLES[name]}, {theme}">'
                for theme in ("dark", "light")
            )
            lines.append(shown)
    return "\n".join(lines) + "\n"
