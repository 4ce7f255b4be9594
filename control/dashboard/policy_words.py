"""How the window names fuses, rungs and rules: a title each, and for a rule one line that says when it counts."""

FUSES = {
    "max_turns": "Turns",
    "max_steps": "Tool steps",
    "max_tokens": "Tokens",
    "max_cost": "Cost",
    "max_seconds": "Wall clock",
    "max_working_seconds": "Working time",
    "max_model_calls": "Model calls",
    "warn_model_calls": "Model calls, warning",
    "max_identical_calls": "Identical calls",
    "max_oscillations": "Edits back and forth",
    "max_failures_in_a_row": "Failures in a row",
    "max_children": "Sub-agents",
    "max_depth": "Depth of sub-agents",
}
# How a fuse reads in a list of them: `80 k tokens`.
UNITS = {
    "max_turns": "turns",
    "max_steps": "steps",
    "max_tokens": "tokens",
    "max_cost": "",
    "max_seconds": "in all",
    "max_working_seconds": "of work",
    "max_model_calls": "model calls",
    "max_identical_calls": "identical calls",
    "max_oscillations": "edits back",
    "max_failures_in_a_row": "failures in a row",
    "max_children": "sub-agents",
    "max_depth": "deep at most",
}
RUNGS = {
    "observe": "Noted in the log; the run feels nothing",
    "steer": "The model is told that it repeats itself",
    "block": "The call is not run, or run and answered as unchanged",
    "escalate": "A stronger model takes the next turn",
    "stop": "The run trips",
}
MODES = {
    "refuse": "not run",
    "stub": "run, “unchanged” if it is",
    "observe": "never blocked",
}
RULES: dict[str, dict[str, str]] = {
    "The same call again": {
        "repeat_error": "The same call met the same error",
        "repeat_failing_command": "The same command failed the same way",
        "failure_despite_changes": "It fails the same way after every change",
        "repeat_effect": "The same side effect a second time",
        "repeat_state": "The same change to what is so already",
        "repeat_operation": "The same operation, the same answer",
        "repeat_read": "The same read, the same answer",
        "pending": "Still pending, nothing new",
        "screen_still": "The screen has not moved",
        "screen_step": "Step after step on a screen that tells nothing",
    },
    "Failures of one kind": {
        "failure_auth": "Refused for want of rights, whatever the arguments",
        "failure_invalid": "Invalid arguments, again and again",
        "failure_transient": "A passing failure that does not pass",
        "failure_missing": "Looking for what is not there",
        "failure_other": "One error, whatever the arguments",
        "failure_unknown_tool": "A tool that does not exist",
        "failures_same_text": "Several tools fail with one text",
        "failures_in_a_row": "No success between failures of any kind",
    },
    "Nothing new": {
        "nothing_new": "Reads of what has been read",
        "same_answer": "Other arguments, the same answer",
        "same_answer_near": "Nearly the same arguments, the same answer",
        "empty_answers": "Searches that find nothing",
    },
    "The same in other words": {
        "reworded_effect": "The same message or order in other words",
        "respawned": "A sub-agent with the same brief",
        "reworded_question": "The same question in other words",
        "thinking_in_circles": "Thoughts that come back",
    },
    "Moves without work": {
        "edit_oscillation": "A file goes back to what it held before",
        "edit_without_change": "An edit that changes nothing",
        "bookkeeping_only": "Plans and lists, no work",
        "thinking_only": "Thoughts, no work",
        "waiting_only": "Waits, no work",
        "spawns": "Sub-agents started",
        "repeated_text": "The same text with no call between",
        "chanting": "One text over and over inside an answer",
        "compaction_only": "Compressed again with no call between",
    },
}
SWITCHES = {
    "credentials": {
        "keep": "A run keeps to the key it names",
        "rotate": "Another key may take over from the one named",
    },
    "on_quota": {"wait": "Without quota a run waits", "fail": "Without quota a run fails"},
    "unpriced": {
        "refuse": "A money cap needs a priced model",
        "tokens_only": "Without a price only the token fuse holds",
    },
}


def title(rule: str) -> str:
    """`repeat_read` as people say it."""
    return rule.replace("_", " ")
