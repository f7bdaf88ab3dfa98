"""Thin adapters to the tools that evaluators already use."""
