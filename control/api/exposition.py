"""The text format of Prometheus: families with their samples, labels escaped, histograms summed over their buckets."""

from collections.abc import Iterable, Mapping

import orjson

from control.runs.families import FAMILIES, PREFIX

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]


def family(name: str, kind: str, text: str, samples: Samples) -> str:
    """A gauge or a counter."""
    lines = [f"# HELP {PREFIX}{name} {_help(text)}", f"# TYPE {PREFIX}{name} {kind}"]
    lines += [_line(name, labels, value) for labels, value in samples]
    return "\n".join(lines) + "\n"


def counted(name: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """One of the families that are counted from the logs; `rows`: labels as JSON -> part -> value."""
    kind = FAMILIES[name]
    if not kind.labels and not rows:
        rows = {"{}": {}}  # there from the beginning, so that a rate can be taken of the first one
    lines = [f"# HELP {PREFIX}{name} {_help(kind.help)}", f"# TYPE {PREFIX}{name} {kind.kind}"]
    for text, parts in sorted(rows.items()):
        labels = orjson.loads(text)
        if kind.bounds:
            lines += _histogram(name, labels, kind.bounds, parts)
        else:
            lines.append(_line(name, labels, parts.get("", 0.0)))
    return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, bounds: Iterable[float], parts: Mapping[str, float]) -> Iterable[str]:
    below = 0.0
    for bound in [*(f"{bound:g}" for bound in bounds), "+Inf"]:
        below += parts.get(bound, 0.0)
        yield _line(f"{name}_bucket", {**labels, "le": bound}, below)
    yield _line(f"{name}_sum", labels, parts.get("sum", 0.0))
    yield _line(f"{name}_count", labels, below)


def _line(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(word)}"' for key, word in labels.items())
    # Whole numbers as such: a counter in the millions must not lose its last digits.
    told = str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
    return f"{PREFIX}{name}{{{inner}}} {told}" if inner else f"{PREFIX}{name} {told}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
