"""What makes a call the same call: everything the guard reads out of a call before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agents.policy.asked import Asked
from agents.policy.canonical import digest, exact, flat_key, parse
from agents.policy.contents import content_after, is_cosmetic
from agents.policy.identity_rules import Rule, identified
from agents.policy.likeness import Words, words_of
from agents.policy.natures import Nature, moves_money, nature_of
from agents.policy.shells import Command
from agents.policy.subjects import (
    about_of,
    address_of,
    by_sub_command,
    command_of,
    meaning_of,
    program_of,
    texts_of,
    tokens_of,
    wait_of,
)


@dataclass(kw_only=True)
class Act:
    """A call as the guard sees it. `number`: as it was asked; `call`: as evidence names it; `key`: its meaning;
    `exact`: its arguments as given; `about`: the thing it is about, without range and query; `narrow`: whether other
    calls may be about the same thing; `address`: whom it reaches, without the words; `tokens`: names in it that tie it
    to other calls; `content`: checksums of what a file will hold after it; `cosmetic`: an edit of remarks or blanks.
    """

    number: int
    call: int
    batch: int
    tool: str
    nature: Nature | None
    key: str
    about: str
    narrow: bool
    path: str
    wait_s: float
    shell: bool
    program: str
    polls: bool
    exempt: bool
    tied: bool
    money: bool
    cosmetic: bool
    content: tuple[str, ...]
    spent_tokens: int
    spent_usd: float
    args: Any = field(repr=False)
    pairs: Mapping[str, Any] = field(repr=False)
    command: Command | None = field(repr=False)

    # Worked out only for the calls and policies that need them.

    @cached_property
    def exact(self) -> str:
        return self.key if self.tied else exact(self.tool, self.args)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tokens_of(self.pairs, self.command)

    @cached_property
    def address(self) -> str:
        return digest(f"{self.tool}\0{address_of(self.args)}")

    @cached_property
    def words(self) -> Words:
        return words_of(self.text)

    @cached_property
    def text(self) -> str:
        return texts_of(self.args)[:2_000]


def act_of(asked: Asked, rules: Mapping[str, Rule]) -> Act:
    """Read a call. Never raises, whatever the arguments are."""
    args = parse(asked.args)
    tool = asked.tool
    command = command_of(tool, args)
    nature = nature_of(tool, args, command, asked.hints)
    if isinstance(args, Mapping):
        nature = by_sub_command(args, nature)
    rule = rules.get(tool, asked.hints.identity)
    pairs = {flat_key(key): one for key, one in list(args.items())[:200]} if isinstance(args, Mapping) else {}
    meant = meaning_of(args, command)
    about, narrow, path = about_of(tool, args, pairs, command, meant)
    key = ""
    if rule is not None and not isinstance(rule, bool):
        key = digest(f"{tool}\0{identified(rule, args)}")
    return Act(
        number=asked.call,
        call=asked.call,
        batch=asked.batch,
        tool=tool,
        nature=nature,
        key=key or digest(f"{tool.casefold()}\0{meant}"),
        about=about,
        narrow=narrow,
        path=path,
        wait_s=wait_of(nature, pairs, command),
        shell=command is not None,
        program=program_of(command),
        polls=asked.hints.poll,
        exempt=rule is False,
        tied=rule is not None and not isinstance(rule, bool),
        money=moves_money(tool),
        cosmetic=nature is Nature.EDIT and is_cosmetic(pairs),
        content=content_after(pairs) if nature is Nature.EDIT else (),
        spent_tokens=asked.tokens,
        spent_usd=asked.cost_usd,
        args=args,
        pairs=pairs,
        command=command,
    )
