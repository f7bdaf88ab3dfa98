"""Streams of integers with a running statistic, one file per task."""
