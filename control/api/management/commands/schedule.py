"""schedule [NAME]: lists schedules, or saves, stops, starts, runs or deletes one."""

import argparse
from typing import Any

from control.api import schedules
from control.api.acts import Act
from control.api.cli import Console, add_limits, limits_of, me, storable
from control.api.schemas import LimitsIn
from control.fleet.models_schedules import Schedule
from control.fleet.scheduling import FIELDS

_TEXTS = ("agent", "task", "cron", "zone", "policy", "project", "workspace", "missed", "overlap")


class Command(Console):
    help = (
        "Without NAME all schedules, one line of JSON each. With NAME alone that one, with its last times. With --cron "
        "and --task it is saved; what is left out of a schedule that exists stays."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", nargs="?")
        parser.add_argument("--cron", metavar="'30 1 * * 1-5'", help="minute hour day month weekday")
        parser.add_argument("--zone", help="a time zone such as Europe/Berlin; UTC by default")
        parser.add_argument("--task")
        for name in ("agent", "policy", "project", "workspace"):
            parser.add_argument(f"--{name}")
        parser.add_argument("--missed", choices=("once", "skip", "all"), help="times that no desk saw")
        parser.add_argument("--overlap", choices=("skip", "allow", "interrupt"), help="if the run before goes on")
        parser.add_argument("--stop-after-trips", type=int, metavar="N", help="0: never")
        parser.add_argument("--dry-run", action="store_true", default=None)
        act = parser.add_mutually_exclusive_group()
        for word in ("on", "off", "now", "delete"):
            act.add_argument(f"--{word}", action="store_true")
        parser.add_argument("--reason", default="")
        add_limits(parser)

    def act(self, **options: Any) -> None:
        if options["name"] is None:
            for row in Schedule.objects.order_by("name"):
                self.say(schedules.row_of(row))
            return
        name = storable(options["name"])
        by, target, reason = me().name, f"schedule:{name[:80]}", storable(options["reason"]) or None
        if options["on"] or options["off"]:
            act = Act(action="switch_schedule", target=target, reason=reason)
            why = reason or ""
            self.say(self.perform(act, lambda: schedules.switched(name, on=options["on"], by=by, why=why)).body)
        elif options["now"]:
            self.say(self.perform(Act(action="start", target=target), lambda: schedules.started(name, by)).body)
        elif options["delete"]:
            act = Act(action="delete_schedule", target=target, reason=reason)
            self.say(self.perform(act, lambda: schedules.deleted(name)).body)
        elif given := self._given(name, options):
            act = Act(action="write_schedule", target=target, reason=reason)
            self.say(self.perform(act, lambda: schedules.saved(name, given, by)).body)
        else:
            self.say(schedules.row_of(schedules.find(name), times=True))

    def _given(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        """What is to be saved, whole and checked; empty if nothing is."""
        given = {word: storable(options[word]) for word in _TEXTS if options[word] is not None}
        for word in ("stop_after_trips", "dry_run"):
            if options[word] is not None:
                given[word] = options[word]
        limits = limits_of(options)
        if not given and not limits:
            return {}
        row = Schedule.objects.filter(name=name).first()
        old = {field: getattr(row, field) for field in FIELDS} if row else {}
        kept = {**old.pop("limits", {}), **limits}
        payload = schedules.ScheduleIn(**{**old, **given})
        return {**schedules.given_of(payload), "limits": LimitsIn(**_numbers(kept)).given()}


def _numbers(limits: dict[str, str]) -> dict[str, Any]:
    whole = ("max_turns", "max_steps", "max_tokens")
    words = {"max_seconds": float} | dict.fromkeys(whole, int)
    return {name: words.get(name, str)(value) for name, value in limits.items()}
