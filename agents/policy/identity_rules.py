"""Identity rules per tool: fields, or an expression over them, that make a call the same call."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.policy.canonical import meaning

Rule = Sequence[str] | str | bool | None


def identified(rule: Sequence[str] | str, args: Any) -> str:
    """What a rule takes from the arguments. Fields: `["url", "user.id"]`. Expression: `url | host + id | digits`.

    An expression joins terms by `+`; a term is a path of keys, piped through lower, trim, digits, letters, host,
    basename, `head N`. What is missing counts as empty.
    """
    if isinstance(rule, str):
        return "\0".join(_term(term, args) for term in rule.split("+"))
    return "\0".join(f"{name}={meaning(_at(args, name))}" for name in rule)


FILTERS: dict[str, Callable[[str], str]] = {
    "lower": str.casefold,
    "trim": lambda text: " ".join(text.split()),
    "digits": lambda text: "".join(c for c in text if c.isdigit()),
    "letters": lambda text: "".join(c for c in text if c.isalpha()),
    "host": lambda text: re.sub(r"^\w+://(?:[^@/]*@)?", "", text).split("/", 1)[0].split("?", 1)[0].casefold(),
    "basename": lambda text: text.rstrip("/").rsplit("/", 1)[-1],
}


def check_expression(text: str) -> str | None:
    """What is wrong with an expression, or None."""
    for term in text.split("+"):
        path, *filters = (part.strip() for part in term.split("|"))
        if not re.fullmatch(r"[\w.-]+", path):
            return f"{path!r} is no path of keys"
        for one in filters:
            if one not in FILTERS and not re.fullmatch(r"head \d{1,4}", one):
                return f"{one!r} is no filter; there are {', '.join(FILTERS)}, head N"
    return None


def _term(term: str, args: Any) -> str:
    path, *filters = (part.strip() for part in term.split("|"))
    found = _at(args, path)
    text = found if isinstance(found, str) else "" if found is None else meaning(found)
    for one in filters:
        text = text[: int(one[5:])] if one.startswith("head ") else FILTERS[one](text) if one in FILTERS else text
    return text


def _at(args: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(args, Mapping):
            return None
        args = args.get(part)
    return args
