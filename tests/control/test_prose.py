"""Markdown of models laid out: its form is kept, nothing of it acts, loads or hides."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control import plain
from control.prose import MOST, laid_out
from tests.fixtures.hostile import EVERY

TAGS = re.findall(r"\w+", "p ul ol li blockquote em strong s table thead tbody tr th td pre code hr br a span")
REL = "noopener noreferrer nofollow"
PARTS = (
    "![x](https://evil.example/p.png)", "[a](javascript:alert(1))", '[b](https://evil.example "t")', "[c][1]",
    "[1]: https://evil.example", "<https://a.example/>", "<img src=x onerror=y>", "&#x202e;", "\u202e", "\\", "```\n",
    "|a|b|\n|-|-|\n|1|2|3|\n", "# ", "> ", "- ", "3. ", "**", "_", "`", "~~", "    ", "\n", "\n\n", "word",
    "<!-- x -->", "[//]: # (hidden)", "\x1b[31m", "***\n",
)  # fmt: skip


class Reader(HTMLParser):
    """Collects the words; anything that a laid-out answer must not have fails at once."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        given = dict(attrs)
        if tag == "a":
            assert given.keys() == {"href", "target", "rel"} and given["rel"] == REL and given["target"] == "_blank"
            href = str(given["href"])
            assert href.lower().startswith(("https://", "http://", "mailto:"))
            self.links.append(href)
        elif tag == "ol":
            assert given.keys() <= {"start"}
        else:
            assert given.keys() <= {"class"}

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    assert plain.visible(reader.words) == reader.words
    for link in reader.links:
        assert link in reader.words
    return reader


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=16).map("".join))
def test_whatever_a_model_writes_only_reads(text: str):
    read(laid_out(text))


@pytest.mark.case("A6-04")
@pytest.mark.parametrize("word", EVERY)
def test_hostile_words_only_read(word: str):
    read(laid_out(word))
    read(laid_out(f"**{word}**\n\n- [{word}]({word})\n\n```{word}\n{word}\n```\n![{word}](<{word}>)"))


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("# Done\n**All** green", '<p class="head head-1">Done</p><p><strong>All</strong> green</p>'),
        ("- a\n- b", "<ul><li>a\n</li><li>b\n</li></ul>"),
        ("3. c\n4. d", '<ol start="3"><li>c\n</li><li>d\n</li></ol>'),
        ("```py\nx < 1\n```", '<p class="leads">py</p><pre>\nx &lt; 1\n</pre>'),
        ("| a |\n|:-:|\n| 1 |", "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"),
        ("![up](https://e.example/p?d=1)", '<p><span class="leads">⟨image up https://e.example/p?d=1⟩</span></p>'),
        (
            "[docs.example](https://evil.example)",
            f'<p><a href="https://evil.example" target="_blank" rel="{REL}">docs.example</a> '
            '<span class="leads">⟨https://evil.example⟩</span></p>',
        ),
        ("[x](javascript:a)", '<p><span>x</span> <span class="leads">⟨javascript:a⟩</span></p>'),
        ("[x](//evil.example)", '<p><span>x</span> <span class="leads">⟨//evil.example⟩</span></p>'),
        ("`<b>` &#x202e;", "<p><code>&lt;b&gt;</code> &amp;#x202e;</p>"),
    ],
)
def test_form_is_kept_and_addresses_are_told(text: str, markup: str):
    assert laid_out(text) == markup


@pytest.mark.parametrize(
    "text",
    ["plain words, 3 of them", "a < b_c and <b>", "", "a" * (MOST + 1) + "**b**", "| a |\n|---|\n| 1 | hidden |"],
    ids=["nothing to lay out", "only signs", "nothing", "long", "a cell that a table would drop"],
)
def test_what_would_say_the_same_or_less_is_left_as_it_was_written(text: str):
    assert laid_out(text) == ""


def test_a_definition_of_a_link_is_seen():
    assert "[//]: # (the plan)" in laid_out("**a**\n\n[//]: # (the plan)")


@pytest.mark.parametrize("piece", ["[a](b ", "*a ", "[[", "a*\n", "1. x\n", "_a*", "![a](b)", "\\*", "> ", "|a"])
def test_no_text_takes_long(piece: str):
    begun = time.process_time()
    laid_out((piece * MOST)[:MOST])
    assert time.process_time() - begun < 1.5
