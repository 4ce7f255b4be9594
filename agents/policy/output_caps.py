"""What a provider says that an answer may hold, where it refuses a request because of its output limit."""

import re

_NAME = r"[`'\"]?max_?(?:completion_|output_|new_)?_?tokens[`'\"]?"
_NUMBER = r"[`'\"]?(\d[\d,]*)[`'\"]?"
# A sentence about the output limit names it in one of these ways; the first number found is the limit.
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"supports at most {_NUMBER} (?:completion|output)",
        rf"{_NAME}\W+\d[\d,]*\s*>\s*{_NUMBER}, which is the maximum",
        rf"{_NAME}.{{0,80}}?(?:less than or equal to|at most|not exceed|no more than|maximum of|maximum is|<=|"
        rf"max(?:imum)? (?:value|allowed)[^\d]{{0,20}})\s*{_NUMBER}",
        rf"range (?:of|for) {_NAME} (?:is|should be|must be)\s*\[\s*\d+\s*,\s*{_NUMBER}\s*\]",
        rf"{_NAME}.{{0,120}}?(?:range|between)[^\[\d]{{0,30}}\[?\s*\d+\s*(?:,|and|to|-)\s*{_NUMBER}\s*\]?(?!\s*\(excl)",
        rf"{_NAME}.{{0,80}}?取值范围\D{{0,12}}\d+\s*[,，~-]\s*{_NUMBER}",
    )
)
_EXCLUSIVE = re.compile(rf"from \d+ \(inclusive\) to {_NUMBER} \(exclusive\)", re.IGNORECASE)
# The window and what the messages take of it: the rest is what is left for the answer.
_LEFT = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"maximum context length is (?P<window>\d[\d,]*).{0,80}?requested \d[\d,]* tokens \((?P<input>\d[\d,]*) in "
        r"(?:the|your) (?:messages|prompt)",
        rf"{_NAME} exceed context limit:\s*(?P<input>\d[\d,]*)\s*\+\s*\d[\d,]*\s*>\s*(?P<window>\d[\d,]*)",
        r"maximum context length is (?P<window>\d[\d,]*) tokens and your request has (?P<input>\d[\d,]*) input",
    )
)
_READ = 8000
# Counts differ a little from request to request.
_MARGIN = 16


def told(text: str) -> int | None:
    """The output cap in tokens that follows from the provider's words; None where they speak of something else.

    0 or less: the messages alone leave no room.
    """
    text = text[:_READ]
    for pattern in _LEFT:
        if found := pattern.search(text):
            return _int(found["window"]) - _int(found["input"]) - _MARGIN
    if found := _EXCLUSIVE.search(text):
        return _int(found[1]) - 1 if re.search(_NAME, text, re.IGNORECASE) else None
    for pattern in _LIMITS:
        if found := pattern.search(text):
            return _int(found[1])
    return None


def window(text: str) -> int | None:
    """The window in tokens, where `told` is what the messages leave of it: a cap for this request, not for others."""
    found = next((found for pattern in _LEFT if (found := pattern.search(text[:_READ]))), None)
    return None if found is None else _int(found["window"])


def _int(digits: str) -> int:
    return int(digits.replace(",", ""))
