"""Scripted models behind a real HTTP server, and the scenarios they play: something live to watch, stop and measure."""
