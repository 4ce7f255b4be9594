"""Windows and output caps of well-known models, where the price library names none; unknown is None.

From the model pages of the makers' own documentation. A row is a pattern over the last part of a model's name, dots
written as hyphens, then the window and the most that one answer may hold.
"""

import re
from functools import lru_cache

_DATE = r"(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest|-preview)?"
_ROWS: tuple[tuple[str, int | None, int | None], ...] = (
    # Anthropic, models overview.
    (r"claude-(opus|fable)-5(-\d)?" + _DATE, 1_000_000, 128_000),
    (r"claude-(opus|sonnet)-4-[6-9]" + _DATE, 1_000_000, 128_000),
    (r"claude-(opus|sonnet|haiku)-4-5" + _DATE, 200_000, 64_000),
    (r"claude-opus-4(-[01])?" + _DATE, 200_000, 32_000),
    (r"claude-sonnet-4(-0)?" + _DATE, 200_000, 64_000),
    (r"claude-3-7-sonnet" + _DATE, 200_000, 64_000),
    (r"claude-3-5-(sonnet|haiku)" + _DATE, 200_000, 8_192),
    # OpenAI, model pages.
    (r"gpt-5(-\d)?(-codex)?(-(mini|nano|max))?" + _DATE, 400_000, 128_000),
    (r"gpt-4-1(-(mini|nano))?" + _DATE, 1_047_576, 32_768),
    (r"gpt-4o(-mini)?" + _DATE, 128_000, 16_384),
    (r"o(1|3|3-mini|4-mini)" + _DATE, 200_000, 100_000),
    # Gemini API, models.
    (r"gemini-(2-5|3|3-\d)-(pro|flash|flash-lite)" + _DATE, 1_048_576, 65_536),
)
_TABLE = tuple((re.compile(pattern), window, output) for pattern, window, output in _ROWS)


@lru_cache(maxsize=256)
def caps(model: str) -> tuple[int | None, int | None]:
    """Window and output cap of a model by its name."""
    name = model.rpartition("/")[2].partition(":")[0].lower().replace(".", "-")
    return next(((window, output) for row, window, output in _TABLE if row.fullmatch(name)), (None, None))
