"""Markdown of a model's answer as HTML that cannot do more than be read.

Parsed by markdown-it-py without HTML; what it makes is written here, element by element, so that nothing gets onto a
page because a parser knows it. Images are told and never fetched, links say where they lead, and headings are no
headings of the page.
"""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from control import plain

# A longer answer is shown as it was written: some texts cost the square of their length.
MOST = 8_000
# Without one of these it looks the same either way.
_SIGNS = re.compile(r"[*_`\[<|~]|^ {0,3}(?:#|>|[-+] |\d{1,9}[.)] |={3}|-{3}| {4}|\t)", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")
# Any element but a paragraph.
_FORM = re.compile(r"<(?!/?p>)")
# The number of an item, which its list writes itself.
_ITEM = re.compile(r"^[ \t>]*\d{1,9}[.)]", re.MULTILINE)
_LEADS = frozenset({"http", "https", "mailto"})
_REL = "noopener noreferrer nofollow"
# Element of Markdown -> ours. What is not here (and not below) leaves only its words.
_TAGS: Mapping[str, str] = {
    "paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li", "blockquote": "blockquote",
    "em": "em", "strong": "strong", "s": "s", "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr",
    "th": "th", "td": "td",
}  # fmt: skip


def _leads(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in _LEADS and bool(parts.netloc or parts.scheme.lower() == "mailto")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Entities stay as they were written: one could spell a letter that hides others. Definitions of links too: they
    would not be seen at all."""
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    made.enable(["table", "strikethrough"]).disable(["entity", "reference"])
    # Also where a link leads elsewhere than to the web: that one is shown and does not lead.
    made.validateLink = lambda url: True  # type: ignore[method-assign]
    return made


def laid_out(text: str) -> SafeString:
    """The text as HTML; empty where that would change nothing, cost much, or leave out a word that was written."""
    if len(text) > MOST or not _SIGNS.search(text):
        return SafeString("")
    text = plain.visible(text)
    made = _blocks(_parser().parse(text))
    seen = html.unescape(re.sub(r"<[^>]*>", "", made))
    if not _FORM.search(made) or any(word not in seen for word in _WORD.findall(_ITEM.sub("", text))):
        return SafeString("")
    return mark_safe(made)


def _blocks(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    for token in tokens:
        if token.type == "inline":
            out.append(_inline(token.children or []))
        elif token.type in ("fence", "code_block"):
            name = f'<p class="leads">{_shown(token.info)}</p>' if token.info.strip() else ""
            out.append(f"{name}<pre>\n{_shown(token.content)}</pre>")
        elif token.type == "hr":
            out.append("<hr>")
        elif token.type.startswith("heading_"):
            # Not a heading of the page, which its reader did not write.
            out.append(f'<p class="head head-{token.tag[1:]}">' if token.nesting == 1 else "</p>")
        elif not (token.type.startswith("paragraph_") and token.hidden):
            out.append(_tag(token))
        elif token.nesting == -1:
            out.append("\n")
    return "".join(out)


def _tag(token: Token) -> str:
    name, _, end = token.type.rpartition("_")
    tag = _TAGS.get(name, "")
    if not tag:
        return _shown(token.content)
    if end == "close":
        return f"</{tag}>"
    start = token.attrs.get("start") if tag == "ol" else None
    return f'<{tag} start="{int(start)}">' if start is not None else f"<{tag}>"


def _inline(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    links: list[Token] = []
    for token in tokens:
        if token.type == "link_open":
            links.append(token)
            url = str(token.attrs.get("href", ""))
            out.append(f'<a href="{escape(url)}" target="_blank" rel="{_REL}">' if _leads(url) else "<span>")
        elif token.type == "link_close":
            out.append(_closed(links.pop()))
        else:
            out.append(_INLINE.get(token.type, _tag)(token))
    return "".join(out)


def _closed(link: Token) -> str:
    """A link says where it leads; what does not lead says what it would have been."""
    url = str(link.attrs.get("href", ""))
    end = "</a>" if _leads(url) else "</span>"
    return end if link.markup == "autolink" else f'{end} <span class="leads">⟨{_told(url, link)}⟩</span>'


def _told(url: str, token: Token) -> str:
    title = str(token.attrs.get("title", ""))
    return f"{_shown(url)} “{_shown(title)}”" if title else _shown(url)


def _image(token: Token) -> str:
    words = "".join(child.content for child in token.children or [])
    url = str(token.attrs.get("src", ""))
    return f'<span class="leads">⟨image {_shown(words)}{" " if words else ""}{_told(url, token)}⟩</span>'


def _shown(text: str) -> str:
    return str(escape(plain.visible(text)))


_INLINE: Mapping[str, Callable[[Any], str]] = {
    "text": lambda token: _shown(token.content),
    "code_inline": lambda token: f"<code>{_shown(token.content)}</code>",
    "softbreak": lambda _: "\n",
    "hardbreak": lambda _: "<br>",
    "image": _image,
}
