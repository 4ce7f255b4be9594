"""Places in the workspace: from the path a model wrote to the real path, and to an open file that is still there.

Confinement is by real path, so links and `..` that lead outside are refused; the final opens follow no link and check
once more where they arrived, so that a directory swapped for a link in between is noticed.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agents.errors import ToolError

_FD_LINKS = "/proc/self/fd"


@dataclass(frozen=True, slots=True)
class Place:
    """One path: `real` is absolute with links resolved, `shown` relative to the workspace, as messages name it."""

    root: str
    real: str
    shown: str

    @property
    def parent(self) -> str:
        return os.path.dirname(self.real)

    @property
    def name(self) -> str:
        return os.path.basename(self.real)


def workspace_root(workspace: str) -> str:
    return os.path.realpath(workspace)


def folds_case(workspace: str) -> bool:
    """Whether the file system here takes `A` and `a` for the same name, as far as the workspace's own name can tell."""
    root = workspace_root(workspace)
    while root != "/":
        head, name = os.path.split(root)
        if name.swapcase() != name:
            try:
                return os.path.samefile(root, os.path.join(head, name.swapcase()))
            except OSError:
                return False
        root = head
    return False


def find(workspace: str, given: str | None) -> Place:
    """Where `given` leads; by default to the workspace itself. Raises ToolError (`outside`) if elsewhere."""
    root = workspace_root(workspace)
    given = given or "."
    if "\x00" in given:
        raise ToolError(
            "The path holds a NUL character, which no file name can. Give the path without it.", kind="bad_path"
        )
    try:
        real = _straight(root, given) or os.path.realpath(os.path.join(root, given))
        os.fsencode(real)
    except (OSError, ValueError) as error:
        raise ToolError(f"{given!r} is no usable path ({error}).", kind="bad_path") from error
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        raise ToolError(
            f"{given!r} lies outside the workspace. Give a path inside it, relative to its top, such as 'src/main.py'.",
            kind="outside",
        )
    return Place(root, real, os.path.relpath(real, root))


def _straight(root: str, given: str) -> str | None:
    """The real path where no link is on the way from the top, without looking at what lies above it once more."""
    if given.startswith("/"):
        return None
    real = root
    for name in given.split("/"):
        if name in ("", "."):
            continue
        if name == "..":
            return None
        real = os.path.join(real, name)
        try:
            if stat.S_ISLNK(os.lstat(real).st_mode):
                return None
        except OSError:
            return None
    return real


def find_to_write(workspace: str, given: str) -> Place:
    """The same for a file that is to be written: not the top itself, nothing inside `.git`, no directory."""
    place = find(workspace, given)
    if any(part.casefold() == ".git" for part in place.shown.split(os.sep)):
        raise ToolError(f"{given!r} belongs to git. Change it with git itself, through run_command.", kind="bad_path")
    if os.path.isdir(place.real) or given.endswith("/"):
        raise ToolError(f"{given!r} is a directory. Give the path of a file in it.", kind="is_directory")
    return place


def touched(workspace: str, args: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """The real paths that the arguments of these names lead to; bad ones count as the whole workspace."""
    found = []
    for name in names:
        try:
            found.append(find(workspace, args.get(name)).real)
        except ToolError:  # the call itself will say what is wrong; until then it is kept away from others
            found.append(workspace_root(workspace))
    return tuple(found)


@contextmanager
def opened(place: Place) -> Iterator[int]:
    """A descriptor of the regular file at the place. Raises ToolError if there is none, or it is no longer there."""
    # Without O_NONBLOCK the open of a named pipe waits for a writer that may never come.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(place.real, flags)
    except OSError as error:
        raise ToolError(_why_not(place, error), kind=_kind(error)) from error
    try:
        _check_where(descriptor, place.root, place.shown)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise ToolError(f"{place.shown!r} is a directory; list it with list_files.", kind="is_directory")
        if not stat.S_ISREG(mode):
            raise ToolError(f"{place.shown!r} is no regular file but a pipe, socket or device.", kind="not_regular")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_parent(place: Place, *, create: bool) -> Iterator[int]:
    """A descriptor of the directory that holds (or will hold) the file; made with its own parents if `create`."""
    if not os.path.isdir(place.root):
        # Made anew it would be a directory that nobody knows of and nothing keeps.
        raise ToolError("The workspace directory is gone; nothing can be written there.", kind="no_workspace")
    try:
        if create:
            os.makedirs(place.parent, exist_ok=True)
        descriptor = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ToolError(_why_not(place, error), kind=_kind(error)) from error
    try:
        _check_where(descriptor, place.root, place.shown)
        yield descriptor
    finally:
        os.close(descriptor)


def _check_where(descriptor: int, root: str, shown: str) -> None:
    """Refuse a descriptor that leads out of the workspace after all; where the system cannot tell, realpath must do."""
    try:
        arrived = os.readlink(f"{_FD_LINKS}/{descriptor}")
    except OSError:
        return
    if arrived != root and not arrived.startswith(root.rstrip("/") + "/"):
        raise ToolError(f"{shown!r} was replaced by a link that leads outside the workspace.", kind="outside")


def _why_not(place: Place, error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return f"There is no file {place.shown!r}.{_neighbours(place)}"
        case errno.ELOOP:
            return f"{place.shown!r} is a link that leads in a circle or was replaced meanwhile."
        case errno.ENOTDIR | errno.EEXIST:
            return f"A part of {place.shown!r} is a file, not a directory. Look with list_files."
        case errno.EACCES | errno.EPERM:
            return f"Permission denied for {place.shown!r}."
        case errno.ENAMETOOLONG:
            return "The path is too long for this file system. Give a shorter one."
        case _:
            return f"{place.shown!r} cannot be opened: {error.strerror}."


def _kind(error: OSError) -> str:
    return "not_found" if error.errno == errno.ENOENT else "cannot_open"


def _neighbours(place: Place) -> str:
    """A hint: what the nearest directory that exists holds under a similar name."""
    try:
        names = sorted(os.listdir(place.parent))
    except OSError:
        return " Its directory does not exist either; look with list_files."
    stem = os.path.splitext(place.name)[0].casefold()
    close = [name for name in names if stem and (stem in name.casefold() or name.casefold() in stem)][:5]
    return f" Similar names there: {', '.join(close)}." if close else " Look with list_files."
