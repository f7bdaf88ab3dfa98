"""Twelve ways in which a server can repeat the key that it was sent, and how a text is searched for any of them."""

from __future__ import annotations

import base64
from collections.abc import Callable

KEY = "loop-back-key-Zq3vT9xWm1"

ECHOES: dict[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "header": lambda key: f"Authorization: Bearer {key}",
    "upper case": str.upper,
    "first piece": lambda key: key[:8],
    "inner piece": lambda key: key[9:21],
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a login": lambda key: base64.urlsafe_b64encode(f"me:{key}".encode()).decode(),
    "hex": lambda key: key.encode().hex(),
    "hex with colons": lambda key: ":".join(f"{byte:02X}" for byte in key.encode()),
    "percent": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "JSON": lambda key: "".join(f"\\u{byte:04x}" for byte in key.encode()),
    "HTML": lambda key: "".join(f"&#{byte};" for byte in key.encode()),
}


def leaks(text: str) -> list[str]:
    """The ways by which a text gives the key away: any eight characters of its spelling in a row, in either case."""
    low = text.lower().replace("\\\\", "\\")
    return [way for way, echo in ECHOES.items() if _piece(echo(KEY).removeprefix("Authorization: Bearer "), low)]


def _piece(spelling: str, low: str) -> bool:
    """Ends of a login in base64, and of numbers, are not the key's."""
    size = max(8, 8 * len(spelling) // len(KEY)) if len(spelling) > len(KEY) else 8
    inner = spelling.lower()[4:-2] if spelling.endswith("==") or spelling.startswith("bWU6") else spelling.lower()
    return any(inner[at : at + size] in low for at in range(len(inner) - size + 1))
