"""Wordings of providers by language and subject; a family says what was said, not yet what it means for the run."""

from agents.policy.wordings import (
    access,
    chinese,
    content,
    european,
    history,
    japanese,
    korean,
    limits,
    money,
    size,
    trouble,
)

TABLES = tuple(
    module.FAMILIES
    for module in (
        size, history, content, money, limits, access, trouble, chinese, japanese, korean, european,
    )
)  # fmt: skip
