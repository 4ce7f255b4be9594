"""`python -m agents.drill [--host H] [--port N]`: the scripted models as a server of their own."""

import argparse
import contextlib
import sys

from agents.drill.scenarios import SCENARIOS
from agents.drill.server import HOST, PORT, base_url, listen, serve


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m agents.drill", description="Serve the scripted drill models.")
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--port", type=int, default=PORT, help="0 picks a free one")
    options = parser.parse_args(argv)
    try:
        bound = listen(options.host, options.port)
    except OSError as error:
        sys.stderr.write(f"Cannot listen at {options.host}:{options.port}: {error.strerror}. Try --port 0.\n")
        return 1
    sys.stdout.write(f"drill models at {base_url(bound)}: {', '.join(SCENARIOS)}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        serve(bound)
    return 0


if __name__ == "__main__":
    sys.exit(main())
