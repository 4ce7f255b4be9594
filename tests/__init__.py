"""The suite: mirrors the tree; e2e/ drives a real browser; scripted_server/ is the provider of most tests."""
