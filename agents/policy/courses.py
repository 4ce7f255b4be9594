"""Signs of where a run is going: round in circles, towards something, or nowhere, read off its last calls."""

from agents.policy.identity import Act
from agents.policy.natures import Nature
from agents.policy.progress import Progress
from agents.policy.rows import Known, Row, form_of, share
from agents.policy.telling import NAMES as OF_TELLING
from agents.policy.telling import of_telling

# In the order of `of_course`.
_NAMES = """
word_news_4 word_news_8 since_words said_again_8 largest_8 like_last_8 acks_8 dull_3 told_again known_looks still_run
cycle_laps cycle_chain cycle_near serial serial_8 serial_keys serial_tool sure_8 moves_8
falls_8 rises_8 trend unmoved_8 moved_8
series varied templates grows asked_again new_asked_8 new_ids_8 same_place_run
auth_8 transient_8 one_cause_8 family_8 family_run fault_8 failed_run failed_news
acts_8 hard waits_all waits_growing ended_same ended_8
recovered_8
"""
NAMES = (*_NAMES.split(), *OF_TELLING)
# What reaches somebody is never run to see what comes of it.
HARD = frozenset({Nature.SEND, Nature.SPAWN, Nature.ASK})
_LONGEST_CYCLE, _LAPS = 8, 4
_SAME_WORDS, _ONE_CAUSE, _NEAR = 0.7, 0.5, 0.3
# An acknowledgement has few words; what is told has more.
_ACK, _TELLS = 4, 6
_LITTLE, _SOME = 0.1, 0.2


def of_course(act: Act, progress: Progress, rows: list[Row], same: list[Row], known: Known, dry: int) -> list[float]:
    """`same`: the last calls of the tool; `dry`: calls since an answer had new words."""
    eight = rows[-8:]
    signs = _of_answers(rows, eight, dry)
    signs.append(_still(same))
    signs += cycle(rows, act.tool, act.request[0])
    signs += _of_serials(act, rows, eight, same)
    signs += (
        max([row.falls for row in eight]),
        max([row.rises for row in eight]),
        min(progress.trend(0), 12),
        sum([row.unmoved > 0 for row in eight]),
        sum([row.unmoved < 0 for row in eight]),
    )
    signs += _of_requests(act, eight, same, known)
    signs.append(_same_place(rows))
    signs += _of_failures(rows, eight)
    signs += (
        sum([row.acts for row in eight]) / len(eight),
        float(act.nature in HARD),
        sum([row.waited for row in rows]),
        float(progress.growing > 1),
        sum([row.ended for row in rows if row.key == act.key]),
        sum([row.ended for row in eight]),
        sum([row.recovered for row in eight]),
    )
    signs += of_telling(act, rows)
    return signs


def _of_answers(rows: list[Row], eight: list[Row], dry: int) -> list[float]:
    last, four, many = rows[-1], eight[-4:], len(eight)
    sizes: dict[int, int] = {}
    for row in eight:
        sizes[row.gist] = sizes.get(row.gist, 0) + 1
    told = looks = 0
    for row in reversed(rows):
        if row.acts or row.failed or row.waited:
            continue
        if row.new_words > 1 and row.word_news > _LITTLE:
            break
        told += len(row.words) >= _ACK
    for row in reversed(rows):
        if row.acts or row.failed or row.waited or (row.new_words > 1 and row.word_news > _SOME):
            break
        looks += len(row.words) >= _TELLS
    return [
        sum([row.word_news for row in four]) / len(four),
        sum([row.word_news for row in eight]) / many,
        min(dry, 24),
        many - len(sizes),
        max(sizes.values()),
        sum([share(row.words, last.words) >= _SAME_WORDS for row in eight[:-1]]),
        sum([len(row.words) <= _ACK and not row.failed for row in eight]),
        sum([row.word_news < _LITTLE for row in eight[-3:]]),
        told,
        looks,
    ]


def _still(same: list[Row]) -> int:
    """How many answers of the tool in a row were equal to the letter."""
    run = 0
    for row in reversed(same):
        if row.same != same[-1].same or len(row.words) < _ACK:
            break
        run += 1
    return run


def cycle(rows: list[Row], tool: str, asked: frozenset[str]) -> tuple[float, int, float]:
    """How often the last calls and answers have gone round, over how many calls, and how near this one continues."""
    best = (0.0, 0, 0.0)
    many = len(rows)
    for period in range(1, min(_LONGEST_CYCLE + 1, many)):
        if rows[-period].tool != tool or (near := share(asked, rows[-period].asked)) < _NEAR:
            continue
        chain = 0
        most = min(many - period, _LAPS * period)
        while chain < most:
            one, other = rows[-1 - chain], rows[-1 - chain - period]
            if one.tool != other.tool or not (one.gist == other.gist or share(one.words, other.words) >= _SAME_WORDS):
                break
            chain += 1
        if chain / period > best[0]:
            best = (chain / period, chain, near)
            if chain == _LAPS * period:
                break
    return best


def _of_serials(act: Act, rows: list[Row], eight: list[Row], same: list[Row]) -> tuple[float, ...]:
    """How often calls have said the same but for ids and counters: this one, the last eight, those of the tool."""
    own = next((row.serial for row in reversed(rows) if row.key == act.key), 0)
    again = [row for row in eight if row.serial]
    return (
        own,
        len(again),
        len({row.key for row in again}),
        sum([row.serial > 0 for row in same]),
        sum([row.serial > 1 for row in again]),
        sum([row.moves for row in eight]),
    )


def _of_requests(act: Act, eight: list[Row], same: list[Row], known: Known) -> tuple[float, ...]:
    """Whether requests step through a series, grow, or come again."""
    form, figures = form_of(act.meant)
    asked = act.request[0]
    series = varied = grows = 0
    now = figures
    for row in reversed(same):
        if row.form != form or row.figures == now:
            break
        changed = [(one, was) for one, was in zip(now, row.figures, strict=False) if one != was]
        series += len(changed) == 1 and series == varied and float(changed[0][0]) > float(changed[0][1])
        varied += 1
        now = row.figures
    words = asked
    for row in reversed(same):
        if not words > row.asked:
            break
        grows += 1
        words = row.asked
    named: set[str] = set()
    fresh = 0
    for row in eight:
        fresh += not row.ids <= named
        named |= row.ids
    return (
        series,
        varied,
        sum([row.form == form for row in same]),
        grows,
        float(f"{act.tool}{form}" in known.forms),
        sum([not row.asked_before for row in eight]) / len(eight),
        fresh / len(eight),
    )


def _same_place(rows: list[Row]) -> int:
    run = 0
    for row in reversed(rows):
        if not row.place or row.place != rows[-1].place:
            break
        run += 1
    return run


def _of_failures(rows: list[Row], eight: list[Row]) -> tuple[float, ...]:
    """Whether what fails has one cause, and whether failures still tell something."""
    failed = [row for row in eight if row.failed]
    families: dict[str, int] = {}
    faults: dict[str, int] = {}
    for row in failed:
        families[row.family] = families.get(row.family, 0) + 1
        faults[row.fault] = faults.get(row.fault, 0) + 1
    run = of_family = 0
    for row in reversed(rows):
        if not row.failed:
            break
        of_family += of_family == run and row.family == rows[-1].family
        run += 1
    sorts = [row.sort for row in failed]
    recent = [row.word_news for row in rows[-6:] if row.failed][-4:]
    return (
        sorts.count("auth"),
        sorts.count("transient"),
        sum([share(row.words, failed[-1].words) >= _ONE_CAUSE for row in failed]) if failed else 0,
        max(families.values(), default=0),
        of_family,
        max(faults.values(), default=0),
        run,
        sum(recent) / len(recent) if recent else 0.5,
    )
