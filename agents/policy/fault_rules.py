"""The order in which the text is judged: specific before general, what a retry cannot cure before what it can."""

from collections.abc import Callable

from agents.policy import fault_account as account
from agents.policy import fault_request as request
from agents.policy.fault_heard import Found, Heard

Rule = Callable[[Heard], Found | None]

# Says what is wrong, whatever code stands beside it.
DEFINITE: tuple[Rule, ...] = (
    request.single_request, account.limit_zero, account.held_quota, request.about_tools, request.image,
    request.long_context, request.history, request.bad_call, request.policy, request.output_cap, request.overflow,
    request.payload, account.quota_id, account.region, account.money, account.plan_quota, account.permanent,
    account.capacity, account.credential, account.limits, account.missing_model, account.permission,
)  # fmt: skip
# Is said about everything: a code that names something definite is heard before.
VAGUE: tuple[Rule, ...] = (account.form, account.timeout, account.server)


def first(rules: tuple[Rule, ...], heard: Heard) -> Found | None:
    for rule in rules:
        if (found := rule(heard)) is not None:
            return found
    return None
