"""Whether an agent or a policy could work at all, in the words of the API."""

from typing import Any

from agents.errors import ConfigError
from control.api.errors import ApiError
from control.fleet import policies
from control.runs import fitness


def check_agent(fields: dict[str, Any], *, itself: str) -> None:
    """Raises ApiError for what no run could use: unknown tools, policies, sub-agents; bad servers, URLs, fallbacks."""
    try:
        fitness.check(fields, itself=itself)
    except fitness.Unfit as error:
        raise ApiError(error.code, error.message, status=error.status, detail=error.detail) from error


def check_policy(body: dict[str, Any]) -> None:
    """Raises ApiError for a body that no run could follow; the message names the place."""
    try:
        policies.check(body)
    except ConfigError as error:
        raise ApiError(error.kind, error.message, status=422) from error
