"""Learn the weights of the guard's weak signs anew: `python -m tests.training.train`.

Needs scikit-learn, which the project itself does not. Prints what the trees make of sequences by authors none of whose
they were shown, author by author, then writes `agents/policy/stagnation.json`. Sets that are kept for measuring are
never read here.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.policy.signs import SIGNS
from tests.training.signs import Seen, labelled, seen_in

TRAINED_ON = (
    "sequences.jsonl",
    "sequences_own.jsonl",
    "sequences_blind.jsonl",
    "sequences_unseen.jsonl",
    "sequences_training.jsonl",
    "sequences_written.jsonl",
)
# In these the first letter of an id is the author's; every other file has one author.
BY_SEVERAL = frozenset({"sequences_training.jsonl", "sequences_written.jsonl"})
TARGET = Path(__file__).parents[2] / "agents" / "policy" / "stagnation.json"
# Chosen so that of the healthy runs of authors not shown one in fifty is refused a call, one in ten gets a stub.
REFUSE, STUB, STUB_ACT = 0.75, 0.52, 0.52
# What counts is to know a loop when it should be held, which is by then or a little earlier: what it looks like long
# after says less. By calls after the latest one that should be held back.
WEIGHT_OF_LOOP = {-2: 1.0, -1: 1.5, 0: 2.0, 1: 1.0, 2: 0.5, 3: 0.3, 4: 0.2, 5: 0.2, 6: 0.2}

Row = tuple[str, bool, int, list[Seen]]


def rows() -> list[Row]:
    """(author, whether a loop, by which call, what was seen) of every sequence."""
    return [(_author(name, row), loop, by, seen_in(row)) for name in TRAINED_ON for row, loop, by in labelled(name)]


def _author(name: str, row: Mapping[str, Any]) -> str:
    return f"{name} {row['id'][0]}" if name in BY_SEVERAL else name


def samples(found: Sequence[Row]) -> tuple[list[list[float]], list[int], list[float]]:
    """Signs, labels and weights: the calls around the latest one that should be held back, against all calls of healthy
    runs, each run weighing the same, and the early calls of loops."""
    signs, labels, weights = [], [], []
    for _, loop, by, seen in found:
        for one in seen:
            if one.signs is None:
                continue
            if not loop:
                label, weight = 0, 12.0 / len(seen)
            elif (when := one.call - by) in WEIGHT_OF_LOOP:
                label, weight = 1, WEIGHT_OF_LOOP[when]
            elif one.call <= by * 0.35:
                label, weight = 0, 0.3
            else:
                continue
            signs.append(one.signs)
            labels.append(label)
            weights.append(weight)
    return signs, labels, weights


def trained(found: Sequence[Row]) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-not-found]

    signs, labels, weights = samples(found)
    trees = GradientBoostingClassifier(
        n_estimators=150,
        max_depth=4,
        learning_rate=0.08,
        subsample=0.6,
        max_features=0.2,
        min_samples_leaf=20,
        random_state=1,
    )
    return trees.fit(signs, labels, sample_weight=weights)


def touched(model: Any, row: Row) -> tuple[bool, bool, bool]:
    """(caught in time, refused, answered with a stub) with the other rules' verdicts taken in."""
    _, _, by, seen = row
    looked = [one for one in seen if one.signs is not None]
    scores = (
        dict(zip((one.call for one in looked), model.predict_proba([o.signs for o in looked])[:, 1], strict=True))
        if looked
        else {}
    )
    refused = [
        o.call for o in seen if o.held in ("stop", "refuse") or (o.hard and o.sure and scores.get(o.call, 0) >= REFUSE)
    ]
    stubs = [o.call for o in seen if o.held == "stub" or (o.stale and scores.get(o.call, 0) >= _stub_from(o))]
    return any(call <= by for call in refused + stubs), bool(refused), bool(stubs)


def _stub_from(one: Seen) -> float:
    return STUB if not one.acts else 2.0 if one.hard else STUB_ACT


def validate(found: list[Row]) -> None:
    results: dict[str, list[int]] = {}
    for author in dict.fromkeys(name for name, *_ in found):
        model = trained([row for row in found if row[0] != author])
        for row in found:
            if row[0] != author:
                continue
            caught, was_refused, stub = touched(model, row)
            sums = results.setdefault(author, [0] * 5)
            if row[1]:
                sums[0] += 1
                sums[1] += int(caught)
            else:
                sums[2] += 1
                sums[3] += int(was_refused)
                sums[4] += int(stub and not was_refused)
    for name, (loops, in_time, healthy, refused, stubbed) in results.items():
        print(
            f"{name}: {in_time}/{loops} loops in time; of {healthy} healthy {refused} refused a call, {stubbed} a stub"
        )


def written(model: Any) -> dict[str, Any]:
    import numpy  # type: ignore[import-not-found]

    rate = model.learning_rate
    start = float(model._raw_predict_init(numpy.zeros((1, len(SIGNS))))[0][0])
    trees = [_node(one[0].tree_, 0, rate) for one in model.estimators_]
    thresholds = {"refuse": REFUSE, "stub": STUB, "stub_act": STUB_ACT}
    return {"signs": list(SIGNS), "start": round(start, 6), **thresholds, "trees": trees}


def _node(tree: Any, at: int, rate: float) -> Any:
    if tree.children_left[at] < 0:
        return round(float(tree.value[at][0][0]) * rate, 5)
    left, right = (_node(tree, int(side[at]), rate) for side in (tree.children_left, tree.children_right))
    # Rounded up, so that what stood at the threshold stays on its side.
    return [int(tree.feature[at]), round(float(tree.threshold[at]) + 5e-7, 6), left, right]


def main() -> None:
    found = rows()
    validate(found)
    TARGET.write_text(json.dumps(written(trained(found)), separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"written: {TARGET}")


if __name__ == "__main__":
    main()
