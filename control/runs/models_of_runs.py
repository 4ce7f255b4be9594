"""Which models a run talks to, where, with which credential; and whether a money cap on it can hold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents.drill.scenarios import SCENARIOS
from agents.drill.script import Scenario
from agents.errors import ConfigError
from agents.providers import NAMES, catalog
from agents.spec import Limits, ModelSpec
from control.fleet import credentials
from control.fleet.addresses import is_allowed, normal_url, why_bad
from control.fleet.models import Agent
from control.runs.refusals import StartRefused

DRILL_MODEL = "tour"
PLAIN = "openai"


def choose(
    *,
    model: str | None,
    base_url: str | None,
    credential: str | None,
    agent: Agent,
    parent: ModelSpec | None = None,
) -> ModelSpec:
    """The request's word counts first, then the agent's, then the parent's, then the environment's.

    Raises StartRefused: bad_base_url, base_url_not_allowed, unknown_model, unknown_credential,
    credential_host_mismatch.
    """
    address = checked(base_url or agent.base_url or (parent.base_url if parent else "") or _default_address())
    same_place = parent is not None and parent.base_url == address
    name = named_well(
        model or agent.model or (parent.model if parent and same_place else "") or _default_model(address), address
    )
    wanted = credential or agent.credential or (parent.credential if parent and same_place else None)
    return _spec(name, address, wanted or None, parent.provider if parent and same_place else None)


def fallbacks(agent: Agent, model: ModelSpec) -> tuple[ModelSpec, ...]:
    """The models that stand behind a run's own; one without an address is at the run's, and one at the run's address
    keeps the credential that the run names. Raises StartRefused."""
    found = []
    for given in agent.fallbacks or []:
        spec = _fallback(given, given.get("base_url") or model.base_url)
        if spec.credential is None and spec.base_url == model.base_url:
            spec = replace(spec, credential=model.credential)
        found.append(spec)
    return tuple(found)


def check_fallbacks(given: Sequence[Mapping[str, Any]], base_url: str) -> None:
    """Whether fallbacks could work, before an agent is saved: all of it where their address is known by now (its own,
    or the agent's `base_url`), else what is known. Raises StartRefused."""
    for one in given:
        if address := one.get("base_url") or base_url:
            _fallback(one, address)
            continue
        named_well(str(one["model"]), "the run's own address")
        _known_provider(one.get("provider"))
        try:
            if one.get("credential"):
                credentials.known(str(one["credential"]))
        except credentials.CredentialError as error:
            raise StartRefused(error.code, error.message) from error


def _fallback(given: Mapping[str, Any], base_url: str) -> ModelSpec:
    address = checked(base_url)
    name = named_well(str(given["model"]), address)
    _known_provider(given.get("provider"))
    return _spec(name, address, given.get("credential") or None, given.get("provider") or None)


def named_well(model: str, address: str) -> str:
    """Raises StartRefused `unknown_model` for what can be no model's name there."""
    name = model.strip()
    if not name or len(name) > 200 or not name.isprintable():
        raise StartRefused(
            "unknown_model", f"No model is named for {address}. Name one (model), or set MODEL in the environment."
        )
    if _is_drill(address) and name not in SCENARIOS:
        raise StartRefused(
            "unknown_model",
            f"The drill server at {address} does not play {name!r:.80}. It plays {', '.join(sorted(SCENARIOS))}; for a "
            "real model give its base_url, or set OPENAI_BASE_URL, OPENAI_API_KEY and MODEL.",
            detail={"known": sorted(SCENARIOS)},
        )
    return name


def _spec(name: str, address: str, label: str | None, provider: str | None) -> ModelSpec:
    """With the credential that was named; None stands for any that fits. A provider that nobody named is that of the
    credential, which may also be a vendor's name that is none of ours."""
    try:
        fit = [credentials.named(label, address)] if label else credentials.fitting(address, provider)
    except credentials.CredentialError as error:
        raise StartRefused(error.code, error.message) from error
    spoken = provider or next((one.provider for one in fit if one.provider in NAMES), PLAIN)
    return ModelSpec(model=name, base_url=address, provider=spoken, credential=label)


def _known_provider(name: str | None) -> None:
    if name and name not in NAMES:
        known = ", ".join(sorted(NAMES))
        raise StartRefused("unknown_provider", f"There is no provider {name!r:.60} to fall back to. Known: {known}.")


def checked(base_url: str) -> str:
    """A base URL in its normal form. Raises StartRefused."""
    bad = why_bad(base_url)
    if bad is not None:
        raise StartRefused(
            "bad_base_url", f"The base URL {base_url!r:.200} cannot be used. {bad}", detail={"base_url": base_url[:500]}
        )
    if not is_allowed(base_url):
        raise StartRefused(
            "base_url_not_allowed",
            f"{base_url:.200} is not in ALLOWED_BASE_URLS. Use a listed address, or have the operator add this one.",
            detail={"base_url": base_url[:500]},
        )
    return normal_url(base_url)


def _default_address() -> str:
    if settings.MODEL_BASE_URL_GIVEN:
        return str(settings.MODEL_BASE_URL)
    if settings.EMBEDDED or settings.DRILL_URL_GIVEN:
        return str(settings.DRILL_URL)
    raise StartRefused(
        "unknown_model",
        "No model is configured here. Give base_url and model, or set OPENAI_BASE_URL, OPENAI_API_KEY and MODEL.",
    )


def _default_model(address: str) -> str:
    return DRILL_MODEL if _is_drill(address) else str(settings.MODEL)


def drill_of(model: ModelSpec) -> Scenario | None:
    """The scenario that a drill model plays; None for a real model."""
    return SCENARIOS.get(model.model) if _is_drill(model.base_url) else None


def spec_of(model: str, address: str, credential: str) -> ModelSpec:
    """A model with the one credential that was named. Raises StartRefused."""
    return _spec(named_well(model, address), address, credential, None)


def _is_drill(address: str) -> bool:
    if settings.MODEL_BASE_URL_GIVEN and address == normal_url(settings.MODEL_BASE_URL):
        return False
    return address == normal_url(settings.DRILL_URL)


def refuse_unknown_helper(models: Sequence[ModelSpec], policy: Mapping[str, Any]) -> None:
    """A policy that gives a turn to a stronger model needs it among the models of the run. Raises StartRefused."""
    escalate = policy.get("escalate")
    wanted = escalate.get("model") if isinstance(escalate, Mapping) else None
    if wanted is not None and wanted not in [one.model for one in models]:
        raise StartRefused(
            "unknown_model",
            f"escalate.model of the policy is {wanted!r:.100}, which is no model of this run "
            f"({', '.join(one.model for one in models):.300}). Add it to the agent's fallbacks or take another policy.",
        )


def refuse_unpriced(model: ModelSpec, limits: Limits, policy: Mapping[str, Any], *, money: str | None = None) -> None:
    """A limit of money needs a price, unless the policy says `unpriced = "tokens_only"`. `money` names such a limit
    beside the run's own. Raises StartRefused."""
    fuse = f"max_cost ({limits.max_cost.source})" if limits.max_cost is not None else money
    if fuse is None or policy.get("unpriced") == "tokens_only":
        return
    try:
        price = catalog.price(model.model, model.base_url)
    except ConfigError as error:
        raise StartRefused("unpriced_model", f"{fuse} cannot hold: {error.message}") from error
    if price is None:
        raise StartRefused(
            "unpriced_model",
            f"{fuse} cannot hold: the price of {model.model} at {model.base_url} is not "
            'known. Use max_tokens instead, or a policy with unpriced = "tokens_only".',
        )
