"""Agents, policies, memory and credentials by reference."""
