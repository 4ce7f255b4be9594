"""The short way through a schema: arguments that fit by the types of their values alone need no validator."""

from collections.abc import Mapping
from typing import Any

_CLASSES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_SAYS_NOTHING = frozenset({"title", "description", "default", "examples"})
_OF_OBJECTS = frozenset({"type", "properties", "required", "additionalProperties"}) | _SAYS_NOTHING
_KEPT = 512


class _Shape:
    """What the short way knows of one schema; `classes` is None where it knows nothing."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        # Kept, so that its id means this schema as long as the shape is known.
        self.schema = schema
        self.required: tuple[str, ...] = ()
        self.closed = False
        self.classes: dict[str, tuple[type, ...]] | None = None
        properties, required = schema.get("properties", {}), schema.get("required", [])
        more = schema.get("additionalProperties", True)
        if (
            schema.keys() <= _OF_OBJECTS
            and schema.get("type", "object") == "object"
            and isinstance(properties, dict)
            and isinstance(required, list | tuple)
            and isinstance(more, bool)
        ):
            self.required, self.closed = tuple(required), not more
            self.classes = {name: _classes_of(one) for name, one in properties.items()}


_shapes: dict[int, _Shape] = {}


def plainly_fits(schema: Mapping[str, Any], value: dict[str, Any]) -> bool:
    """True: the value fits. False: nobody knows yet, and a validator has to say."""
    shape = _shapes.get(id(schema))
    if shape is None:
        if len(_shapes) >= _KEPT:
            _shapes.clear()
        shape = _shapes[id(schema)] = _Shape(schema)
    classes = shape.classes
    if classes is None:
        return False
    for name in shape.required:
        if name not in value:
            return False
    for name, one in value.items():
        fitting = classes.get(name)
        if fitting is None:
            if shape.closed:
                return False
        elif one.__class__ not in fitting:
            return False
    return True


def _classes_of(schema: Any) -> tuple[type, ...]:
    """The classes of values that fit whatever they hold; none if the schema asks for more than a type."""
    if not isinstance(schema, dict) or not schema.keys() <= _SAYS_NOTHING | {"type"}:
        return ()
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return _CLASSES.get(kinds, ())
    if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
        return tuple(found for kind in kinds for found in _CLASSES.get(kind, ()))
    return ()
