"""The switches of a policy that other rooms read; a word that none of them knows would be passed over in silence."""

from collections.abc import Mapping
from typing import Any

from agents.errors import ConfigError

CHOICES = {"credentials": ("keep", "rotate"), "on_quota": ("wait", "fail"), "unpriced": ("refuse", "tokens_only")}


def check_switches(body: Mapping[str, Any]) -> None:
    """Raises ConfigError `bad_policy`, whose message says what may stand there."""
    for name, words in CHOICES.items():
        if name in body and body[name] not in words:
            raise ConfigError("bad_policy", f"{name} is one of {', '.join(words)}, not {body[name]!r:.60}.")
    model, last_word = body.get("compression_model", ""), body.get("last_word", "")
    if not isinstance(model, str):
        raise ConfigError("bad_policy", f"compression_model is the name of a model, not {model!r:.60}.")
    if not isinstance(last_word, bool | str):
        raise ConfigError("bad_policy", f"last_word is true, false or a text, not {last_word!r:.60}.")
