"""The version of the code, as records name it."""

__version__ = "0.8.0"
