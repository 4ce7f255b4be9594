"""The only room that acts: it turns judgement into model calls, tool calls and events."""
