"""Signs of somebody being told the same again, in whatever words: who it is, and whether anything new is named."""

from agents.policy.identity import Act
from agents.policy.rows import Row

NAMES = ("told_run", "told_all", "told_since_news", "told_new", "told_stale", "told_stale_run")
# What an answer must hold of new words to be news.
_NEWS = 0.2


def of_telling(act: Act, rows: list[Row]) -> tuple[float, ...]:
    """How often the same one was told something: in a row, at all, since a look brought news; how much of it is new;
    how often in a row nothing was named that had not been named, with other calls between them and without."""
    address = act.told_to
    if not address:
        return (0, 0, 0, 1.0, 0, 0)
    run = every = since = 0
    unbroken = dry = True
    said: set[str] = set()
    told: list[tuple[frozenset[str], bool]] = [(act.named, True)]
    for row in reversed(rows):
        if row.address == address:
            every += 1
            run += unbroken
            since += dry
            said |= row.asked
            told.append((row.named, unbroken))
        else:
            unbroken = False
            dry = dry and (bool(row.acts) or row.word_news <= _NEWS)
    asked = act.request[0]
    new = len(asked - said) / len(asked) if asked and every else 1.0
    return (run, every, since, new, *_unnamed(told))


def _unnamed(told: list[tuple[frozenset[str], bool]]) -> tuple[int, int]:
    """`told`: what each message named, the latest first, and whether nothing was done between it and the latest."""
    stale = stale_run = 0
    known: set[str] = set()
    for named, unbroken in reversed(told):
        new = not named <= known
        stale = 0 if new else stale + 1
        stale_run = 0 if new or not unbroken else stale_run + 1
        known |= named
    return stale, stale_run
