"""From a hint on the bus to the run it is about, without parsing what nobody here watches."""

import orjson

_RUN = b'{"run":"'
_ROOT = b'","root":"'
_ID = 36


def names(message: bytes) -> tuple[str, str]:
    """`(run, root)` of a hint; root is "" where the hint has none. Raises ValueError for what is no hint."""
    start = len(_RUN)
    run = message[start : start + _ID]
    if message.startswith(_RUN) and message[start + _ID : start + _ID + 1] == b'"':
        if not message.startswith(_ROOT, start + _ID):
            return run.decode(), ""
        at = start + _ID + len(_ROOT)
        if message[at + _ID : at + _ID + 1] == b'"':
            return run.decode(), message[at : at + _ID].decode()
    raw = orjson.loads(message)
    if not isinstance(raw, dict) or not isinstance(raw.get("run"), str):
        raise ValueError("a hint names a run")
    return raw["run"], str(raw.get("root") or "")
