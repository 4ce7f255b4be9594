"""Changes a file so that no reader sees half of it and no other change is lost.

Under the file's lock: read, decide, write a temporary file beside it, check the lease, rename. What was there is given
to the decision and checked again before the rename, because commands and people do not take our locks.
"""

import hashlib
import os
import stat
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from agents.errors import ToolError
from agents.policy.redaction import has_marker
from agents.ports import Edit, ToolContext
from agents.tools.locks import Cancelled, locked
from agents.tools.places import Place, find_to_write, opened, opened_parent

MAX_FILE = 32 * 1024 * 1024
# What a crash leaves behind is known by this name and never committed.
TEMPORARY = ".pilothouse-"
_NEW_FILE_MODE = 0o666


# Inode, size and time of change: what differs when a file was written or replaced.
Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Before:
    """What a file was when its change was decided; `content` None means that there was none."""

    content: bytes | None
    version: Version | None = None
    stat: os.stat_result | None = None


def change(
    context: ToolContext, given: str, decide: Callable[[Before, Place], bytes], *, blind: bool = False
) -> tuple[Edit, Before]:
    """Change one file; `decide` gets what is there and gives what shall be. Blocking: for a thread.

    A `blind` change does not build on what is there, so if the file changes while its lock is awaited, another's
    work would be lost: that is refused as a conflict.
    """
    while True:  # a link may have moved while the lock of its former goal was awaited
        place = find_to_write(context.workspace, given)
        expected = version_at(place) if blind else None
        with locked([place.real], context.cancel):
            if find_to_write(context.workspace, given) == place:
                before = read_before(place)
                if blind and before.version != expected:
                    _conflict(place)
                return replace(context, place, before, decide(before, place)), before


def version_at(place: Place) -> Version | None:
    try:
        return _version(os.lstat(place.real))
    except OSError:
        return None


def read_before(place: Place) -> Before:
    if not os.path.lexists(place.real):
        return Before(None)
    with opened(place) as descriptor:
        found = os.fstat(descriptor)
        if found.st_size > MAX_FILE:
            raise ToolError(
                f"{place.shown!r} has {found.st_size} bytes, too many to edit here. Use run_command.", kind="too_large"
            )
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_FILE + 1)
        return Before(content, _version(found), found)


def replace(context: ToolContext, place: Place, before: Before, content: bytes | None) -> Edit:
    """Put the content in the file's place; None removes the file. The caller holds the file's lock."""
    if content != before.content:
        if content is None:
            _remove(context, place, before)
        else:
            _rename_into(context, place, before, content)
    after = hashlib.sha256(content).hexdigest() if content is not None else None
    return Edit(
        path=place.shown,
        before_sha256=hashlib.sha256(before.content).hexdigest() if before.content is not None else None,
        sha256=after,
        size=len(content) if content is not None else 0,
        state=after[:8] if after else "gone",
        content=content,
    )


def encoded(text: str, what: str) -> bytes:
    """Text as the bytes to write. Refuses redaction markers and halves of characters."""
    if has_marker(text):
        raise ToolError(
            f"{what} holds a redaction marker such as [redacted:api_key]. The real value was hidden from you and "
            "writing the marker would destroy it. Leave that part of the file as it is and edit around it.",
            kind="redacted",
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{what} holds half of a character (a lone surrogate) at position {error.start}; nothing was written. "
            "Send the whole character.",
            kind="bad_text",
        ) from error


def _rename_into(context: ToolContext, place: Place, before: Before, content: bytes) -> None:
    with opened_parent(place, create=before.content is None) as parent:
        temporary = f"{TEMPORARY}{uuid.uuid4().hex}.tmp"
        try:
            _write_new(parent, temporary, content, before.stat)
            _last_check(context, place, before, parent)
            os.replace(temporary, place.name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            raise ToolError(f"{place.shown!r} cannot be written: {error.strerror}.", kind="cannot_write") from error
        finally:
            try:
                os.unlink(temporary, dir_fd=parent)
            except OSError:
                pass  # renamed, or never made


def _write_new(parent: int, name: str, content: bytes, like: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, _NEW_FILE_MODE, dir_fd=parent)
    with open(descriptor, "wb") as file:
        file.write(content)
        if like is not None:
            _resemble(descriptor, like)
        file.flush()
        os.fsync(descriptor)  # a rename may reach the disk before the content it names


def _resemble(descriptor: int, like: os.stat_result) -> None:
    """The new file takes over owner and mode bits; the owner first, because changing it clears some of the bits."""
    if (like.st_uid, like.st_gid) != (os.getuid(), os.getgid()):
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except PermissionError:
            pass  # only root may give files away
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _remove(context: ToolContext, place: Place, before: Before) -> None:
    with opened_parent(place, create=False) as parent:
        _last_check(context, place, before, parent)
        try:
            os.unlink(place.name, dir_fd=parent)
        except OSError as error:
            raise ToolError(f"{place.shown!r} cannot be removed: {error.strerror}.", kind="cannot_write") from error


def _last_check(context: ToolContext, place: Place, before: Before, parent: int) -> None:
    """Right before the change becomes visible: may this worker still act, and is the file still what was read?"""
    if context.cancel.cancelled:
        raise Cancelled
    try:
        now: Version | None = _version(os.stat(place.name, dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        now = None
    if now != before.version:
        _conflict(place)
    if not context.lease.held():
        raise ToolError(
            f"{place.shown!r} was not written: this worker no longer holds the run, another one goes on with it.",
            kind="fenced",
        )


def _conflict(place: Place) -> NoReturn:
    raise ToolError(
        f"Conflict: {place.shown!r} was changed by someone else meanwhile; this call wrote nothing. Read it again, "
        "then decide.",
        kind="conflict",
    )


def _version(found: os.stat_result) -> Version:
    return (found.st_ino, found.st_size, found.st_mtime_ns)
