"""The style guide: every colour, size and part of the window in every state it can be in, on one page."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from agents.policy.policies import shipped
from control.coloured import HUES
from control.dashboard import fleet_rows, policy_changes, policy_sheet, samples, states
from control.dashboard.states import State
from control.dashboard.templatetags.pilothouse import CALLS
from control.dashboard.views import workers as workers_page

SURFACES = ("bg", "surface", "raised", "line", "line-strong", "track", "select", "ink", "strong", "muted", "accent")
WASHES = ("danger", "wash-blocked", "wash-observe", "wash-steer", "wash-ask", "wash-added", "cyan")
TEXTS = (
    ("1", "11 px", "heads of tables"),
    ("2", "12 px", "second lines"),
    ("3", "13 px", "everything"),
    ("4", "14 px", "what a run says"),
    ("5", "17 px", "titles and numbers"),
    ("6", "20 px", "the largest"),
)
ANSWER = """## Both tests pass

`total()` rounded **each line** before it added:

1. the lines keep their cents
2. the sum is rounded once

| test | before | now |
|---|---|---|
| test_total | failed | passed |

> See [the issue](https://issues.example/7). ![chart](https://charts.example/c.png)

```diff
-    return sum(round(line) for line in lines)
+    return round(sum(lines))
```
"""
BADGES = ("off", "live", "reconnecting", "polling", "stale")
SHARES = (("none of it", 0.0), ("a third", 0.33), ("near", 0.82), ("nearly over", 0.95), ("all of it", 1.0))


@cache
def _icons() -> list[str]:
    text = (Path(settings.BASE_DIR) / "templates" / "_icons.html").read_text(encoding="utf-8")
    return re.findall(r'<symbol id="i-([a-z-]+)"', text)


def _states() -> list[State]:
    waits = [State(word=word, icon="waiting", colour="waiting") for word in states.WAITING.values()]
    return [*states.WORDS.values(), *waits, State(word="No contact", icon="question", colour="lost")]


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    run = samples.run("waiting", rung="block")
    before = {"fuses": {"max_steps": 60, "max_cost": 2}, "note": "few steps"}
    after = {"fuses": {"max_steps": 40}, "note": "few steps", "shadow": True}
    context: dict[str, Any] = {
        "section": "styleguide",
        "surfaces": SURFACES,
        "washes": WASHES,
        "texts": TEXTS,
        "icons": _icons(),
        "states": _states(),
        "calls": [(name, *look) for name, look in CALLS.items()],
        "ladders": [(rung or "none", rung) for rung in (None, *states.RUNGS)],
        "badges": BADGES,
        "shares": SHARES,
        "rows": fleet_rows.rows_html(samples.fleet()),
        "strip": fleet_rows.strip_html(),
        "turns": mark_safe(samples.turns()),
        "asks": samples.asks(),
        "hues": HUES,
        "answer_sample": ANSWER,
        "answer": samples.answer(),
        "terms": {"1h": "an hour"},
        "fuses": samples.fuses(),
        "stop": samples.stop(),
        "notes": samples.notes(),
        "run": run,
        "policy": {"version": 1, "known": True, "shadow": False, "shadowed": 0},
        "workers": [workers_page.row_of(worker, {}, now) for worker in samples.workers()],
        "changes": policy_changes.changes(before, after),
        "lines": policy_changes.lines("one\ntwo\nthree\n", "one\n2\nthree\nfour\n"),
        "sheet": policy_sheet.sheet_of(shipped("ladder"), "ladder"),
    }
    return render(request, "styleguide.html", context)
