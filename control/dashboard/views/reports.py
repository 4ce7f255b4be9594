"""What browsers report of our content security policy: something on a page has wanted more than it may."""

import logging
import time
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from agents.policy.redaction import make_safe
from control.plain import visible

LONGEST = 16_384
# Anyone can send these. More than so many in a minute say nothing new.
MOST_A_MINUTE = 30
_FIELDS = ("effective-directive", "violated-directive", "blocked-uri", "document-uri", "source-file", "line-number")
_minute = [0, 0]

logger = logging.getLogger(__name__)


@csrf_exempt
@require_POST
def csp(request: HttpRequest) -> HttpResponse:
    """One line in the log for each report, of the fields that we know, cut and made fit to be read."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > LONGEST:
        return HttpResponse(status=413)
    try:
        report = orjson.loads(request.body)["csp-report"]
        told = " ".join(f"{name}={_told(report[name])}" for name in _FIELDS if report.get(name))
    except (ValueError, KeyError, TypeError, AttributeError):
        return HttpResponse(status=400)
    if told and _fits_in_minute():
        logger.warning("A page wanted more than it may: %s", told)
    return HttpResponse(status=204)


def _told(value: Any) -> str:
    text = str(value)
    # What follows a question mark is what somebody wanted to carry away.
    address, asked, _ = text.partition("?")
    return visible(make_safe(address[:200]).text.replace(" ", "%20")) + ("?…" if asked else "")


def _fits_in_minute() -> bool:
    minute = int(time.monotonic() // 60)
    if _minute[0] != minute:
        _minute[:] = [minute, 0]
    _minute[1] += 1
    return _minute[1] <= MOST_A_MINUTE
