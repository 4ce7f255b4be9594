"""Small decision trees kept as data: how much each sign weighs, learnt from labelled sequences."""

import ast
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """`score` is the share of loops, 0 to 1, among the calls that looked like this one. A look is held back from `stub`
    on, what acts and reaches nobody from `stub_act` on: both are run, and given a stub if they bring no news. What
    reaches somebody is refused from `refuse` on."""

    total: Callable[[Sequence[float]], float]
    refuse: float
    stub: float
    stub_act: float

    def score(self, signs: Sequence[float]) -> float:
        return 1.0 / (1.0 + math.exp(-max(min(self.total(signs), 60.0), -60.0)))


def forest_from(body: Mapping[str, Any], signs: Sequence[str]) -> Forest:
    """`trees`: nested `[sign, threshold, at most, above]`, a leaf is a number; their sum and `start` are the log-odds.

    Raises ValueError if they were made for other signs.
    """
    if list(body["signs"]) != list(signs):
        raise ValueError("the trees were made for other signs; train them again")
    return Forest(
        total=_compiled(body["trees"], float(body["start"])),
        refuse=body["refuse"],
        stub=body["stub"],
        stub_act=body["stub_act"],
    )


def _compiled(trees: Sequence[Any], start: float) -> Callable[[Sequence[float]], float]:
    """The trees as one function: walking them node by node takes eight times as long."""
    names: dict[str, Any] = {}
    body: list[ast.stmt] = [ast.Assign([ast.Name("sum", ast.Store())], ast.Constant(start))]
    body += [ast.AugAssign(ast.Name("sum", ast.Store()), ast.Add(), _expression(tree)) for tree in trees]
    body.append(ast.Return(ast.Name("sum", ast.Load())))
    given = ast.arguments(posonlyargs=[], args=[ast.arg("s")], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef("total", given, body, [])
    module = ast.fix_missing_locations(ast.Module([function], []))
    exec(compile(module, "stagnation.json", "exec"), names)
    total: Callable[[Sequence[float]], float] = names["total"]
    return total


def _expression(node: Any) -> ast.expr:
    if not isinstance(node, list):
        return ast.Constant(float(node))
    sign, threshold, low, high = node
    value = ast.Subscript(ast.Name("s", ast.Load()), ast.Constant(int(sign)), ast.Load())
    test = ast.Compare(value, [ast.LtE()], [ast.Constant(float(threshold))])
    return ast.IfExp(test, _expression(low), _expression(high))


@cache
def shipped_forest(signs: tuple[str, ...]) -> Forest:
    """The trees that ship."""
    body = json.loads(resources.files(__package__).joinpath("stagnation.json").read_text(encoding="utf-8"))
    return forest_from(body, signs)
