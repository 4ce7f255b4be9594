"""Secrets that this process holds itself: hidden wherever they turn up, in whatever form they look like nothing.

A short key without a known beginning has no form by which it could be told; its own value tells it, also in base64 at
any of the three places where it can begin within three bytes, and as part of an address.
"""

import base64
from urllib.parse import quote

# Anything shorter would hide words.
SHORTEST = 8
MARK = "[redacted:api_key]"
_KIND = "api_key"
_written: dict[str, tuple[str, ...]] = {}
_all: tuple[str, ...] = ()


def know(secret: str | None) -> None:
    """Hide this value from now on, in whatever this process makes safe."""
    global _all
    if secret is None or len(secret) < SHORTEST or secret in _written:
        return
    # Some write no letter but those of the alphabet as itself.
    strict = "".join(letter if letter.isalnum() else f"%{ord(letter):02X}" for letter in secret)
    forms = (secret, quote(secret, safe=""), strict, *_in_base64(secret.encode()))
    _written[secret] = tuple(dict.fromkeys(forms))
    # The longer ones first, in case one is a part of another.
    _all = tuple(sorted({form for forms in _written.values() for form in forms}, key=len, reverse=True))


def hide_known(text: str, hidden: dict[str, int]) -> str:
    for form in _all:
        if form in text:
            hidden[_KIND] = hidden.get(_KIND, 0) + text.count(form)
            text = text.replace(form, MARK)
    return text


def forget() -> None:
    """For tests."""
    global _all
    _written.clear()
    _all = ()


def _in_base64(secret: bytes) -> list[str]:
    """The letters that are the secret's alone, whatever stands before and behind it."""
    found = []
    for before in range(3):
        end = (before + len(secret)) * 8 // 6
        letters = base64.b64encode(b"\0" * before + secret).decode()[-(-before * 8 // 6) : end]
        found += [letters, letters.translate(str.maketrans("+/", "-_"))]
    return found
