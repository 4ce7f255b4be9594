"""What a server says of its tools, in a form that every provider accepts and that is safe to check against."""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from agents.policy.redaction import cut, make_safe

ANYTHING: Mapping[str, Any] = {"type": "object", "properties": {}}
LONGEST_SCHEMA, DEEPEST = 64_000, 24
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 2_000
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
# Maps of names to schemas, in which a key is a name and no keyword.
_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
# Values, in which nothing is a keyword.
_VALUES = frozenset({"const", "enum", "default", "examples", "required"})
# A server's regex could hold up the loop; a foreign `$schema` or `$id` changes what the rest means.
_DROPPED = frozenset({"pattern", "patternProperties", "$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary"})
# What providers refuse at the top.
_NOT_AT_TOP = frozenset({"oneOf", "anyOf", "allOf", "not", "enum", "if", "then", "else"})


def names_for(server: str, tools: Iterable[str]) -> dict[str, str]:
    """`mcp__server__tool` for each tool, legal and unlike any other; a name that had to change gets a mark."""
    taken: dict[str, str] = {}
    for tool in tools:
        wanted = f"mcp__{server}__{tool}"
        name = _ILLEGAL.sub("_", wanted)
        if name != wanted or len(name) > LONGEST_NAME or name in taken:
            mark = sha256(tool.encode("utf-8", "replace")).hexdigest()[:6]
            name = f"{name[: LONGEST_NAME - 7]}_{mark}"
        if name not in taken:
            taken[name] = tool
    return taken


def description_of(server: str, text: str | None) -> str:
    safe = make_safe(text or "").text.strip()
    return cut(f"{safe or 'No description.'} (From the MCP server {server}.)", LONGEST_DESCRIPTION)[0]


def parameters_of(schema: Any) -> Mapping[str, Any]:
    """The schema without what could fetch, loop or be refused; a tool whose schema is no use takes any arguments."""
    try:
        if not isinstance(schema, Mapping) or len(json.dumps(schema)) > LONGEST_SCHEMA:
            return ANYTHING
        clean = _walk(schema, 0)
        Draft202012Validator.check_schema(clean)
    except (TypeError, ValueError, RecursionError, SchemaError, re.error):
        return ANYTHING
    top = {key: value for key, value in clean.items() if key not in _NOT_AT_TOP}
    return {**top, "type": "object", "properties": top.get("properties", {})}


def _walk(schema: Any, depth: int) -> Any:
    """Raises ValueError for a reference that leads out of the schema, or in circles, and for one nested too deeply."""
    if depth > DEEPEST:
        raise ValueError("too deep")
    if isinstance(schema, list):
        return [_walk(one, depth + 1) for one in schema]
    if not isinstance(schema, Mapping):
        return make_safe(schema).text if isinstance(schema, str) else schema
    clean: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("$ref", "$dynamicRef", "$recursiveRef") and not _inside(value):
            raise ValueError("a reference that leads elsewhere")
        if key in _DROPPED:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            clean[key] = {make_safe(str(name)).text: _walk(one, depth + 1) for name, one in value.items()}
        else:
            clean[key] = value if key in _VALUES else _walk(value, depth + 1)
    return clean


def _inside(reference: Any) -> bool:
    """Into the definitions, which is what they are for; `#` itself may go in circles."""
    return isinstance(reference, str) and reference.startswith(("#/$defs/", "#/definitions/"))
