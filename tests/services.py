"""Makes the services of the second pass ready: `python -m tests.services DATABASE_URL REDIS_URL`.

The database is dropped and made anew, the tests' own beside it dropped, whoever is still connected to it, and the Redis
database emptied; exits 1 with a sentence when a service is missing.
"""

import sys
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis
from psycopg import sql

HOW_POSTGRES = (
    "PostgreSQL is missing at {url}; to get it: apt-get install postgresql (trust for user postgres on 127.0.0.1), "
    "or point TEST_DATABASE_URL at a server where databases may be made"
)
HOW_REDIS = "Redis is missing at {url}; to get it: apt-get install redis-server, or point TEST_REDIS_URL at a server"


def fresh_database(url: str) -> None:
    """Drop the named database and the one that tests make beside it, whoever is connected, and make it anew. Raises
    psycopg.Error."""
    parts = urlsplit(url)
    name = parts.path.lstrip("/")
    with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True, connect_timeout=5) as server:
        for old in (name, f"test_{name}"):
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(old)))
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def empty_redis(url: str) -> None:
    with redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5) as server:
        server.flushdb()


def main(database_url: str, redis_url: str) -> int:
    missing = []
    try:
        fresh_database(database_url)
    except psycopg.Error as error:
        missing.append(f"{HOW_POSTGRES.format(url=database_url)} ({str(error).strip().splitlines()[0]})")
    try:
        empty_redis(redis_url)
    except redis.RedisError as error:
        missing.append(f"{HOW_REDIS.format(url=redis_url)} ({error})")
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
