"""What makes a call the same call: everything the guard reads out of a call before it runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.policy.asked import Asked
from agents.policy.canonical import digest, exact, flat_key, meaning, parse
from agents.policy.contents import content_after, is_cosmetic
from agents.policy.identity_rules import Rule, identified
from agents.policy.lazily import lazy
from agents.policy.likeness import LONGEST, Words, words_of
from agents.policy.natures import LOOKS, Nature, moves_money, nature_of, pays
from agents.policy.request_words import RequestWords, words_of_request
from agents.policy.shells import Command
from agents.policy.subjects import (
    about_rest,
    address_of,
    by_sub_command,
    command_of,
    meaning_of,
    place_of,
    program_of,
    texts_of,
    tokens_of,
    wait_of,
)

_MANY = 200
_PROSE, _READ = 3, 600
_TELLS = frozenset({Nature.SEND, Nature.ASK, Nature.SPAWN, Nature.SET, Nature.OPERATE})
# A digit, or within a word what joins the parts of a name.
_SINGLED_OUT = re.compile(r"[\d/_@.](?:(?<=\d)|(?<=\S.)(?=\S))")
_EDIT, _SEND = Nature.EDIT, Nature.SEND


@dataclass(kw_only=True)
class Act:
    """A call as the guard sees it. `number`: as it was asked; `call`: as evidence names it; `key`: its meaning;
    `exact`: its arguments as given; `place`: what it is about if that is a file, an address, a table; `narrow`: whether
    other calls may be about the same thing; `address`: whom it reaches, without the words; `tokens`: names in it that
    tie it to other calls.
    """

    number: int
    call: int
    batch: int
    tool: str
    nature: Nature | None
    key: str
    place: str
    narrow: bool
    path: str
    wait_s: float
    shell: bool
    program: str
    polls: bool
    exempt: bool
    tied: bool
    money: bool
    spent_tokens: int
    spent_usd: float
    meant: str = field(repr=False)
    args: Any = field(repr=False)
    pairs: Mapping[str, Any] = field(repr=False)
    command: Command | None = field(repr=False)

    # Worked out only for the calls and policies that need them.

    @lazy
    def exact(self) -> str:
        return self.key if self.tied else exact(self.tool, self.args)

    @lazy
    def about(self) -> str:
        """The thing it is about, without range and query."""
        if self.place:
            return self.place
        if self.command is None:
            return about_rest(self.tool, self.pairs)
        return f"c:{digest(self.meant) if self.tied else self.key}"

    @lazy
    def cosmetic(self) -> bool:
        """Whether it is an edit of remarks or blanks."""
        return self.nature is _EDIT and is_cosmetic(self.pairs)

    @lazy
    def content(self) -> tuple[str, ...]:
        """Checksums of what a file will hold after it."""
        return content_after(self.pairs) if self.nature is _EDIT else ()

    @lazy
    def tokens(self) -> tuple[str, ...]:
        return tokens_of(self.pairs, self.command)

    @lazy
    def address(self) -> str:
        return digest(f"{self.tool}\0{address_of(self.args)}")

    @lazy
    def told_to(self) -> str:
        """Whom or what it tells something, without the words; empty where it tells nothing."""
        tells = self.nature in _TELLS and self.command is None and self.pairs and self.text.count(" ") >= _PROSE
        return self.address if tells else ""

    @lazy
    def named(self) -> frozenset[str]:
        """What its words single out: numbers, names of files, addresses."""
        text = " ".join(self.text[:_READ].casefold().split())
        spots = [at.start() for at in _SINGLED_OUT.finditer(text)]
        ends = [text.find(" ", at) for at in spots]
        return frozenset(
            [
                text[text.rfind(" ", 0, at) + 1 : end if end >= 0 else len(text)]
                for at, end in zip(spots, ends, strict=True)
            ]
        )

    @lazy
    def words(self) -> Words:
        return words_of(self.text)

    @lazy
    def question(self) -> str:
        """All its arguments in their one spelling."""
        return (self.meant if self.command is None else meaning(self.args))[:LONGEST]

    @lazy
    def request(self) -> RequestWords:
        return words_of_request(self.meant)

    @lazy
    def text(self) -> str:
        return texts_of(self.args)[:LONGEST]


def act_of(asked: Asked, rules: Mapping[str, Rule]) -> Act:
    """Read a call. Never raises, whatever the arguments are."""
    args = parse(asked.args)
    tool = asked.tool
    pairs = _flattened(args) if type(args) is dict or isinstance(args, Mapping) else {}
    command = command_of(tool, args, pairs)
    nature = nature_of(tool, args, pairs, command, asked.hints)
    if pairs:
        nature = by_sub_command(pairs, nature)
    rule = rules.get(tool, asked.hints.identity)
    meant = meaning_of(args, command)
    place, narrow, path = place_of(tool, pairs, command)
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
        place=place,
        narrow=narrow,
        path=path,
        wait_s=wait_of(nature, pairs, command),
        shell=command is not None,
        program=program_of(command),
        polls=asked.hints.poll,
        exempt=rule is False,
        tied=rule is not None and not isinstance(rule, bool),
        money=nature not in LOOKS and (moves_money(tool) or (nature is _SEND and pays(pairs))),
        spent_tokens=asked.tokens,
        spent_usd=asked.cost_usd,
        meant=meant,
        args=args,
        pairs=pairs,
        command=command,
    )


def _flattened(args: Mapping[Any, Any]) -> dict[str, Any]:
    if len(args) > _MANY:
        return {flat_key(key): one for key, one in list(args.items())[:_MANY]}
    return {flat_key(key): one for key, one in args.items()}
