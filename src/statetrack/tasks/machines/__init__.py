"""Counters and automata, one file per task."""
