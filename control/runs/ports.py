"""Addresses to listen on: whether one is free, and how it is written."""

import socket


def taken(host: str, port: int) -> str | None:
    """Why nobody can listen there, as a sentence with the way out; None if somebody can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        # As Twisted does: a port whose last connections are still closing is free.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return (
                f"Cannot listen on {shown(host)}:{port}: {error.strerror or error}. Choose another port with "
                f"--port N (or PORT=N), or stop what listens there."
            )
    return None


def free(preferred: int, host: str = "127.0.0.1") -> int:
    """`preferred` if somebody can listen there, else any port."""
    if preferred and taken(host, preferred) is None:
        return preferred
    with socket.socket() as trial:
        trial.bind((host, 0))
        return int(trial.getsockname()[1])


def endpoint(host: str, port: int) -> str:
    """The address as Twisted writes it."""
    return f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"


def shown(host: str) -> str:
    """The host as it stands in a URL that a browser on this machine can open."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
