"""What a drill prints: a row per scenario and guard, sums per guard, and what others measured for comparison."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

Row = Mapping[str, Any]
PUBLISHED = (
    "Published by others for this experiment, not measured here: 18 runs, 314 tool calls down to 64 (20 %), "
    "$0.29 down to $0.05 (17 %)."
)
_SUMMED = ("runs", "tool_executions", "model_calls", "tokens")


def lines(rows: Sequence[Row], *, as_json: bool) -> Iterator[str]:
    """Rows as they are, one JSON object each; or a table for people, with sums and what stands beside them."""
    if as_json:
        yield from map(json.dumps, rows)
        return
    yield from _aligned([list(rows[0]), *(list(row.values()) for row in rows)])
    sums = [_sum(kind, guard, found) for (guard, kind), found in _groups(rows) if len(found) > 1]
    if not sums:
        return
    yield ""
    unguarded = {row["kind"]: row for row in sums if row["guard"] == "off"}
    head = ["sum of", "guard", *_SUMMED, "cost_usd", "executions", "cost"]
    yield from _aligned([head, *([*row.values(), *_shares(row, unguarded.get(row["kind"]))] for row in sums)])
    if unguarded and len(sums) > len(unguarded):
        yield ""
        yield PUBLISHED


def _groups(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], list[Row]]]:
    """Rows by guard and kind, in the order in which the guards come; what has no kind adds up to nothing."""
    order = list(dict.fromkeys(row["guard"] for row in rows))
    kinds = [row for row in rows if row["kind"]]
    kinds.sort(key=lambda row: (row["kind"] != "loop", order.index(row["guard"])))
    for key, found in groupby(kinds, key=lambda row: (row["guard"], row["kind"])):
        yield key, list(found)


def _sum(kind: str, guard: str, rows: Sequence[Row]) -> dict[str, Any]:
    costs = [row["cost_usd"] for row in rows]
    known = [Decimal(cost) for cost in costs if cost is not None]
    return {
        "kind": kind,
        "guard": guard,
        **{name: sum(row[name] for row in rows) for name in _SUMMED},
        "cost_usd": f"{sum(known):.4f}" if len(known) == len(costs) else None,
    }


def _shares(row: Row, unguarded: Row | None) -> list[str]:
    """Executions and cost as shares of those without a guard."""
    if unguarded is None:
        return ["-", "-"]
    return [
        _share(row["tool_executions"], unguarded["tool_executions"]),
        _share(row["cost_usd"], unguarded["cost_usd"]),
    ]


def _share(part: Any, whole: Any) -> str:
    if part is None or whole is None or not Decimal(whole):
        return "-"
    return f"{Decimal(part) / Decimal(whole) * 100:.0f} %"


def _aligned(table: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Columns of one width; numbers to the right."""
    texts = [["-" if cell is None else str(cell) for cell in cells] for cells in table]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [column[-1].replace(".", "").replace(" %", "").isdigit() for column in zip(*texts, strict=True)]
    for cells in texts:
        padded = (
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(cells, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()
