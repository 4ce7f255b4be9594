"""Colours of terminals become classes; all the rest is what `plain.visible` makes of it."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control import plain
from control.coloured import HUES, coloured, hue_of
from tests.fixtures.hostile import EVERY

FLAGS = {"is-bold", "is-italic", "is-line", "is-struck"}
CLASSES = FLAGS | {f"{place}-{hue}" for place in ("in", "on") for hue in HUES}
PARTS = (
    "\x1b[31m", "\x1b[0m", "\x1b[1;38;5;208m", "\x9b7m", "\x1b[48;2;1;2;300m", "\x1b[38:2::9:200:9m", "\x1b[2J",
    "\x1b]8;;http://a/\x07", "\x1b]0;title\x9b31m\x07", "\x1b", "\x1b[", "31m", "\u202e", "\u200b", "\u034f", "\u0301",
    "\u0301\u0302\u0303\u0304", "\U0001f44d\ufe0f", "<b>", "&amp;", "a", "\n", "'\"",
)  # fmt: skip


def bare(markup: str) -> str:
    return html.unescape(re.sub(r"</?span[^>]*>", "", markup))


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=24).map("".join))
def test_without_its_tags_it_is_what_is_visible(text: str):
    markup = coloured(text)
    assert bare(markup) == plain.visible(text)
    assert not set(re.findall(r"<(?!/?span\b)", markup))
    for names in re.findall(r'<span class="([^"]*)">', markup):
        assert set(names.split()) <= CLASSES


@pytest.mark.parametrize("word", EVERY)
def test_hostile_words_stay_words(word: str):
    assert bare(coloured(f"\x1b[31m{word}\x1b[0m")) == plain.visible(f"\x1b[31m{word}\x1b[0m")
    assert not re.search(r"<(?!/?span\b)", coloured(f"\x1b[41m{word}"))


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("\x1b[31mred\x1b[0m!", '<span class="in-red">red</span>!'),
        ("\x1b[1;92mok\x1b[22;39m!", '<span class="in-green is-bold">ok</span>!'),
        ("\x1b[38;5;208mtwo", '<span class="in-yellow">two</span>'),
        ("\x1b[38;2;10;20;250mthree", '<span class="in-blue">three</span>'),
        ("\x1b[38:2::200:20:20ma", '<span class="in-red">a</span>'),
        ("\x1b[30;40mhidden", '<span class="on-grey">hidden</span>'),
        ("\x1b[31;41mred on red", '<span class="on-red">red on red</span>'),
        ("\x1b[7mturned\x1b[27m", '<span class="on-white">turned</span>'),
        ("\x1b[8mconcealed", "concealed"),
        ("\x1b[3;4;9mall\x1b[m.", '<span class="is-italic is-line is-struck">all</span>.'),
        ("\x1b[2J\x1b[1;1H\x1b[?25lup", "up"),
        ("\x1b]8;;https://evil.example/\x07here\x1b]8;;\x07", "⟨link https://evil.example/⟩here"),
        ("\x1b[38;5", ""),
        ("\x1b[38m\x1b[48;9;1mx", "x"),
    ],
)  # fmt: skip
def test_what_a_terminal_would_show_becomes_classes(text: str, markup: str):
    assert bare(coloured(text)) == plain.visible(text)
    if text != "\x1b[38;5":
        assert coloured(text) == markup


def test_neighbours_of_one_look_are_one_piece():
    assert coloured("\x1b[32m" + "\x1b[32ma" * 500) == f'<span class="in-green">{"a" * 500}</span>'


def test_every_colour_has_a_hue():
    steps = range(0, 256, 15)
    found = {hue_of(red, green, blue) for red in steps for green in steps for blue in steps}
    assert found == set(HUES)


def test_a_preview_is_not_cut_inside_an_escape():
    head, more = plain.preview("x" * 1_996 + "\x1b[38;5;208mred", limit=2_000)
    assert more and head == "x" * 1_996
