"""credentials: how each key of the pool fares, by its label; --revive says that a key is good again."""

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agents.policy.credentials import KeyState, rest_of
from control.api.acts import Act, Done
from control.api.cli import Console, storable
from control.api.errors import ApiError
from control.fleet import credentials, pool
from control.fleet.credentials import Credential, CredentialError

HEADS = ("LABEL", "PROVIDER", "HEALTH", "UNTIL", "SPENT", "LIMIT", "IN ALL", "LAST USED")


class Command(Console):
    help = (
        "List the credentials of CREDENTIALS_FILE and how they fare; a key itself is never shown. --revive LABEL makes "
        "a dead or resting one usable again, after its cause was cured: new key, new money."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--revive", metavar="LABEL", help="the credential that is good again")

    def act(self, **options: Any) -> None:
        try:
            if options["revive"] is not None:
                self._revive(storable(options["revive"]))
            else:
                self._list(list(credentials.all_of().values()))
        except CredentialError as error:
            raise ApiError(error.code, error.message) from error

    def _list(self, known: Sequence[Credential]) -> None:
        if not known:
            self.stdout.write("No credentials. Name a file in CREDENTIALS_FILE, or set OPENAI_API_KEY.")
            return
        found, now = pool.seen(known)
        rows = [HEADS, *(_row(one, found[one.label], now) for one in known)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
        for row in rows:
            self.stdout.write("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())

    def _revive(self, label: str) -> None:
        credential = credentials.known(label)

        def work() -> Done:
            before, after = pool.revive(credential)
            result = "unchanged" if before == after else "ok"
            return Done(body=after, result=result, before=_health(before), after=_health(after))

        done = self.perform(Act(action="revive_credential", target=f"credential:{label}"), work)
        if done.result == "unchanged":
            self.stdout.write(f"{label} was well already.")
        else:
            self.stdout.write(f"{label} is used again. Runs that wait for it go on at their time, or by unpause.")
        found, now = pool.seen([credential])
        if (rest := rest_of(found[label].state, now)) is not None:
            self.stdout.write(f"It still rests: {rest.why}, until {_moment(rest.until)}.")


def _row(credential: Credential, seen: pool.Seen, now: datetime) -> tuple[str, ...]:
    state, rest = seen.state, rest_of(seen.state, now)
    health = "ok" if rest is None else "spent" if _is_spent(state) else f"{state.health.value} ({state.reason})"
    return (
        credential.label,
        credential.provider,
        health,
        "" if rest is None else _moment(rest.until),
        f"${state.spent_usd:.4f}" if credential.limit_usd is not None else "",
        "" if credential.limit_usd is None else f"${credential.limit_usd:f}/{credential.per or 'ever'}",
        f"${seen.total_usd:.4f}",
        "" if state.last_used is None else _moment(state.last_used),
    )


def _is_spent(state: KeyState) -> bool:
    return state.health.value != "dead" and state.limit_usd is not None and state.spent_usd >= state.limit_usd


def _moment(at: datetime | None) -> str:
    return "an operator" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _health(state: KeyState) -> dict[str, Any]:
    return {"health": state.health.value, "reason": state.reason, "failures": state.failures}
