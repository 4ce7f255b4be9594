"""A run that comes to nothing without repeating itself in any one way: many weak signs, weighed together.

Each sign is a plain number (how alike the calls of this tool were, how much of the last answers was news, how often the
run went round, how far each other rule has counted); how much each weighs was learnt from labelled sequences and is
kept as data in `stagnation.json`. The sign alone never condemns a look: it is run, and held back only if it is no news.
"""

from collections.abc import Mapping
from typing import Any

from agents.policy.answer_words import AUTH, INVALID, MISSING
from agents.policy.answers import Answer
from agents.policy.asked import Edited
from agents.policy.bounded import remember
from agents.policy.courses import HARD, of_course
from agents.policy.echoes import ECHO, without_echo
from agents.policy.findings import Finding
from agents.policy.forest import Forest, shipped_forest
from agents.policy.identity import Act
from agents.policy.lexing import GIST, gist_sum
from agents.policy.natures import EFFECTS, Nature
from agents.policy.orders import STANDING
from agents.policy.progress import Progress
from agents.policy.rows import (
    ALIKE,
    CLOSE,
    ROWS,
    Heard,
    Known,
    Row,
    dumped,
    follows,
    heard_of,
    led_to,
    loaded,
    near,
    share,
)
from agents.policy.signs import RULES, SIGNS, of_alike, of_tool, of_window
from agents.policy.traces import better
from agents.verdicts import BlockMode

RULE = "stagnation"
_GISTS, _DULL = 2_048, 4
# From this share of what it takes to block on, a rule makes it worth while to weigh everything; so do this many of the
# last few answers that failed or said what another one had said but for its numbers.
_WORTH, _WORTH_DULL = 0.2, 2
# Below the first two scores so many calls are left alone; and twice as many and one more each time that the score has
# risen by no more than `_STILL`, up to the last number, or to `_REST` from the third score on. More dull answers than
# at any time since end the rest.
_FAR, _NEAR, _CALM, _STILL = 0.1, 0.25, 0.4, 0.02
_FAR_REST, _NEAR_REST, _REST, _LONG_REST, _DULLER = 5, 2, 3, 31, 1
# Of the answers told meanwhile these are read, and of all others it is known that they were given.
_UNREAD = 8
# So many calls must have been heard of before one is refused.
_SURE = 3
# What an answer must hold of what was never seen to count as news: of lines, of words.
_NEWS, _NEW_WORDS, _FEW_WORDS = 0.25, 0.15, 6
_COUNTS = (
    "_calls",
    "_since_news",
    "_person_at",
    "_compressed_at",
    "_compressions",
    "_dry",
    "_rest",
    "_stills",
    "_score",
    "_least",
)
# Reasons to fail that do not pass by themselves; so many of the last few calls have had one.
_LASTING, _RECENT, _MOST_OF_THEM = frozenset({AUTH, INVALID, MISSING}), 4, 2
_LOOKS = frozenset({Nature.READ, Nature.CHECK, Nature.SCREEN})


class Stagnation:
    name = RULE
    # What another rule holds back is weighed only to learn from it.
    looks_always = False

    def __init__(self, forest: Forest | None = None) -> None:
        self._given = forest
        self._heard: list[Heard] = []
        self._rows: list[Row] = []
        self._known = Known()
        # Answers without their numbers, and whether each of the last few told nothing.
        self._gists: dict[int, None] = {}
        self._dull: list[int] = []
        # Whom the last calls that reached somebody have reached.
        self._told_to: list[str] = []
        # What the calls of the latest batch were and what they were told.
        self._batch, self._told = 0, set[tuple[str, str]]()
        self._calls = self._since_news = self._person_at = self._compressed_at = self._compressions = self._dry = 0
        self._rest = self._stills = 0
        self._score = 0.0
        self._least = 0
        self._flagged = self._first = self._last = 0
        self._tokens, self._usd = 0, 0.0

    @property
    def _forest(self) -> Forest:
        """Read when it is first needed, so that other signs can be learnt than those it was made for."""
        return self._given or shipped_forest(SIGNS)

    # --- before a call ----------------------------------------------------------------------------------------

    def judge(self, act: Act, progress: Progress, counts: Mapping[str, float]) -> Finding | None:
        """`counts`: of each rule that counted something, how much of what it takes to block."""
        if act.exempt or act.tied or not self.suspicious(counts) or self._rests(counts):
            return None
        if self._done(act) < progress.ordered < STANDING:
            return None  # a person asked for as many
        score = self._forest.score(self.signs(act, progress, counts))
        mode = self._mode(act, score)
        still = mode is None and score <= self._score + _STILL
        at_most = _LONG_REST if score < _CALM else _REST
        self._stills = min(2 * self._stills + 1, at_most) if still else 0
        self._least = sum(self._dull)
        self._rest = max(self._stills, _FAR_REST if score < _FAR else _NEAR_REST if score < _NEAR else 0)
        self._score = score
        if mode is None:
            return None
        first, last = led_to(act, self._rows, self._since_news)
        self._first = self._first or first
        self._last = act.call
        self._tokens += act.spent_tokens
        self._usd += act.spent_usd
        return Finding(
            rule=RULE,
            count=self._flagged + 1,
            fingerprint=act.key,
            first=self._first,
            last=last,
            what="signs of going nowhere",
            mode=mode,
            tokens=self._tokens,
            usd=self._usd,
        )

    def _mode(self, act: Act, score: float) -> BlockMode | None:
        forest = self._forest
        if act.nature not in EFFECTS:
            return BlockMode.STUB if score >= forest.stub else None
        if act.nature in HARD:
            return BlockMode.REFUSE if score >= forest.refuse and self._is_sure(act) else None
        return BlockMode.STUB if score >= forest.stub_act else None

    def _is_sure(self, act: Act) -> bool:
        """Whether what reaches somebody may be refused: enough was heard, it is not the tool's first use, and not the
        next thing of a list."""
        same = [row for row in self._rows if row.tool == act.tool]
        return len(self._rows) >= _SURE and bool(same) and not self._known.lists(act.request[0], same)

    def suspicious(self, counts: Mapping[str, float]) -> bool:
        """Cheap: whether it is worth while to look closer. Else nothing is weighed."""
        if len(self._rows) + len(self._heard) < 2:
            return False
        return sum(self._dull) >= _WORTH_DULL or (bool(counts) and max(counts.values()) >= _WORTH)

    def _done(self, act: Act) -> int:
        """How often this very call was answered since a person spoke, of the last ones."""
        return sum([row.key == act.key for row in self._rows]) + sum([one.act.key == act.key for one in self._heard])

    def _rests(self, counts: Mapping[str, float]) -> bool:
        """What is far from a loop, or no nearer than before, is left alone for some calls, unless a rule counts."""
        dull = sum(self._dull)
        self._least = min(self._least, dull)
        if self._rest <= 0 or dull > self._least + _DULLER or (counts and max(counts.values()) >= _WORTH):
            return False
        self._rest -= 1
        return True

    def signs(self, act: Act, progress: Progress, counts: Mapping[str, float]) -> list[float]:
        """The signs in the order of `SIGNS`."""
        self._catch_up()
        asked, ids = act.request
        rows, tool, known = self._rows, act.tool, self._known
        same, much_of = near(rows, tool, act.key, asked)
        signs: list[float] = [len(same), 0, 0, 0, 0.0, 0.0]
        if much_of:
            signs[1:] = (
                sum([much >= ALIKE for much in much_of]),
                sum([much >= CLOSE for much in much_of]),
                much_of.count(1.0),
                max(much_of),
                sum(sorted(much_of)[-3:]) / min(len(much_of), 3),
            )
        alike = [row for row, much in zip(same, much_of, strict=True) if much >= ALIKE]
        signs += of_tool(same)
        signs += of_alike(alike)
        signs.append(sum([share(ids, row.ids) for row in alike]) / len(alike) if alike else 0.0)
        signs += of_window(rows, tool)
        signs += (
            sum([row.lap for row in rows]),
            sum([row.known for row in rows]),
            min(self._since_news, 40),
            float(bool(act.wait_s) or act.nature is Nature.WAIT),
            min(self._calls - self._person_at, 40),
            min(progress.ordered, 20),
            min(self._calls - self._compressed_at, 40),
            min(self._compressions, 6),
            len(ids.difference(known.asked)) / len(ids) if ids else 0.5,
            len(asked.difference(known.asked)) / len(asked) if asked else 0.0,
            known.told(asked),
            sum([row.told for row in rows[-4:]]) / len(rows[-4:]),
            sum([row.told for row in rows[-8:]]) / len(rows[-8:]),
            follows(asked, rows, same),
            float(act.nature in EFFECTS),
            float(act.nature in _LOOKS),
            max(counts.values(), default=0.0),
            sum(counts.values()),
        )
        signs += of_course(act, progress, rows, same, known, self._dry)
        get = counts.get
        signs += [get(rule, 0.0) for rule in RULES]
        return signs

    # --- after it ---------------------------------------------------------------------------------------------

    def still_same(self, act: Act, answer: Answer) -> bool:
        """Whether an answer is no news."""
        self._catch_up()
        known = self._known
        before = [row for row in self._rows if row.key == act.key]
        row = known.read(heard_of(act, answer, {}), self._rows)
        if row.recovered or (act.nature in _LOOKS and row.unmoved < 0):
            return False  # it goes through at last; it says something else after something was done
        if act.nature is Nature.EDIT and not answer.failed and not before:
            return False  # a content that was not written before, however it is acknowledged
        if before and all(better(list(one.tally or ()), answer) for one in before):
            return False
        if answer.same in known.answers:
            return True
        if before and act.nature in _LOOKS and row.moves:
            return False  # a number has moved that neither counts nor wobbles
        if answer.failed and self._fails_alike(act, answer):
            return True
        if row.new_masked <= _NEWS * len(row.masked):
            return True
        return len(row.words) >= _FEW_WORDS and row.new_words <= _NEW_WORDS * len(row.words)

    def _fails_alike(self, act: Act, answer: Answer) -> bool:
        """Whether it has failed as a call before it, or for the same kind of reason as most of the last ones. What a
        check names counts too: another test that fails is news."""
        if act.nature is Nature.CHECK:
            return any(row.failed and row.fault == answer.fault for row in self._rows)
        if any(row.failed and row.family == answer.family for row in self._rows):
            return True
        sorts = [row.sort for row in self._rows[-_RECENT:] if row.failed]
        return answer.sort in _LASTING and sorts.count(answer.sort) >= _MOST_OF_THEM

    def learn(self, act: Act, answer: Answer, edits: Mapping[str, Edited]) -> None:
        if act.batch != self._batch:
            self._batch = act.batch
            self._told.clear()
        if (act.key, answer.same) in self._told:
            return  # several in one message are one try
        self._told.add((act.key, answer.same))
        self._heard.append(heard_of(act, answer, edits))
        self._dull.append(int(self._is_dull(act, answer)))
        del self._dull[:-_DULL]
        if len(self._heard) > _UNREAD:
            # Too long ago to be weighed; that it was said is remembered.
            self._known.answered(self._heard.pop(0).answer.same)
            self._calls += 1
        if self._last == act.call:
            self._catch_up()

    def _is_dull(self, act: Act, answer: Answer) -> bool:
        """Whether it failed, said what another answer has said but for numbers and for what it repeats of the question,
        or told something to one who was told something just before."""
        gists = {answer.gist}
        bare = without_echo(answer.start[:GIST].casefold(), act.pairs)
        if ECHO in bare:
            gists.add(gist_sum(bare))
        known = not gists.isdisjoint(self._gists)
        remember(self._gists, gists, _GISTS)
        to = act.told_to or (act.address if act.nature in HARD else "")
        again = to in self._told_to
        if to:
            self._told_to = [*self._told_to[-_DULL + 1 :], to]
        return answer.failed or answer.empty or known or again

    def _catch_up(self) -> None:
        for heard in self._heard:
            self._read(heard)
        self._heard.clear()

    def _read(self, heard: Heard) -> None:
        row = self._known.read(heard, self._rows)
        row.state = self._known.wrote(heard.edits)
        told = row.new_words >= 2 and row.word_news >= _NEW_WORDS and not heard.answer.failed
        self._dry = 0 if told else self._dry + 1
        news = row.masked_news >= 0.4 and row.new_masked >= 2 and not heard.answer.failed
        self._since_news = 0 if news else self._since_news + 1
        if news or row.state > 0 or row.recovered:
            self._flagged = self._first = self._tokens = 0
            self._usd = 0.0
        elif self._last == heard.act.call:
            self._flagged += 1
        self._calls += 1
        self._known.keep(row)
        self._rows.append(row)
        del self._rows[:-ROWS]

    def refused(self, act: Act) -> None:
        self._calls += 1
        self._flagged += self._last == act.call

    def person_spoke(self) -> None:
        self._catch_up()
        self._rows.clear()
        self._dull.clear()
        self._person_at = self._calls
        self._since_news = self._dry = self._flagged = self._first = 0

    def context_compressed(self) -> None:
        self._catch_up()
        self._compressed_at = self._calls
        self._compressions += 1

    # --- memory -----------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        self._catch_up()
        return {
            "counts": [getattr(self, name) for name in _COUNTS],
            "flags": [self._flagged, self._first, self._last, self._tokens, self._usd],
            "rows": [dumped(row) for row in self._rows],
            "known": self._known.dump(),
            "gists": list(self._gists),
            "dull": list(self._dull),
            "told_to": list(self._told_to),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        for name, count in zip(_COUNTS, state["counts"], strict=False):
            setattr(self, name, count)
        self._flagged, self._first, self._last, self._tokens, self._usd = state["flags"]
        self._rows = [loaded(kept) for kept in state["rows"]]
        self._known.load(state["known"])
        self._gists, self._dull = dict.fromkeys(state["gists"]), list(state["dull"])
        self._told_to = list(state.get("told_to", ()))
