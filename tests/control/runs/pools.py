"""Runs with a pool of keys: a credentials file of canaries, and a search of everything for them."""

from collections.abc import Iterable
from pathlib import Path

from django.db import connection

from agents.messages import UserMessage
from agents.ports import ChatAnswer, ChatRequest, Picked, Resting
from agents.spec import Limits, ModelSpec, RunSpec
from control.fleet.models import CredentialState
from control.runs.dbthreads import DbThreads
from control.runs.models_pool import PooledModels

CANARY = "sk-canary-of-"


def credentials_file(directory: Path, base_url: str, labels: Iterable[str], more: str = "") -> Path:
    """Each label has its key in a file of its own."""
    text = ""
    for label in labels:
        (directory / f"{label}.key").write_text(f"{CANARY}{label}\n")
        text += (
            f'[[credential]]\nlabel = "{label}"\nprovider = "openai"\nbase_urls = ["{base_url}"]\n'
            f'key_file = "{directory / label}.key"\n{more}\n'
        )
    file = directory / "credentials.toml"
    file.write_text(text)
    return file


def spec_of(model: ModelSpec, *fallbacks: ModelSpec, **policy: object) -> RunSpec:
    return RunSpec(
        id="r",
        root="r",
        parent=None,
        path=("r",),
        agent="default",
        task="do it",
        prompt="You work.",
        tools=(),
        model=model,
        fallbacks=fallbacks,
        limits=Limits(),
        policy_body=policy,
    )


async def picked(models: PooledModels, place: int = 0, *avoid: str) -> Picked:
    found = await models.pick(place, frozenset(avoid))
    assert isinstance(found, Picked), found
    return found


async def rests(models: PooledModels, place: int = 0, *avoid: str) -> Resting:
    found = await models.pick(place, frozenset(avoid))
    assert isinstance(found, Resting), found
    return found


async def ask(found: Picked) -> ChatAnswer:
    part = found.model.encode_message(UserMessage(text="hello"))
    return await found.model.ask(ChatRequest(parts=[part], tools=None), lambda text: None)


async def close(database: DbThreads) -> None:
    """Each thread closes its own connection, so that a test database can be dropped."""
    for _ in range(8):
        await database.once(_close)
    database.close()


def _close() -> None:
    connection.close()


def row(label: str) -> CredentialState | None:
    return CredentialState.objects.filter(label=label).first()


def whole_database() -> str:
    """Every value of every table, as text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                found += [_text(value) for value in row]
    return "\n".join(found)


def _text(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | memoryview) else str(value)
