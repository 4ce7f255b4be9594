"""`python -m agents classify` from outside: JSON lines in, JSON lines out."""

import json
import subprocess
import sys
from typing import Any


def classify(*lines: str) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "agents", "classify"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_each_sample_is_answered_with_its_reason_and_what_it_permits() -> None:
    sample = {"id": "a", "provider": "openai", "http_status": 429, "headers": {"retry-after": "3"}, "body": ""}
    code, answers = classify(json.dumps(sample), "", json.dumps({"id": 2, "transport_exception": "ReadTimeout"}))
    assert code == 0
    assert answers[0] == {
        "id": "a",
        "reason": "rate_limit",
        "retryable": True,
        "should_compress": False,
        "should_rotate_credential": True,
        "should_fallback_model": True,
        "retry_after_s": 3.0,
        "evidence": "status 429 at openai",
    }
    assert (answers[1]["id"], answers[1]["reason"], len(answers)) == (2, "timeout", 2)


def test_a_line_that_is_no_sample_is_named_and_the_rest_goes_on() -> None:
    code, answers = classify("nope", '{"id": 1, "http_status": "x"}', "[]", "{}", '{"id": 2, "http_status": 401}')
    assert code == 2
    assert [answer["error"]["detail"]["line"] for answer in answers[:4]] == [1, 2, 3, 4]
    assert all(
        answer["error"]["code"] == "bad_sample" and "line" in answer["error"]["message"] for answer in answers[:4]
    )
    assert answers[4]["reason"] == "auth"
