"""Counters and automata, one file a task."""
