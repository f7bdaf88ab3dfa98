"""What a network does for ever: a proof that it is right after every word, or a word that breaks it.

The search (`certify.py`, with `boxes.py`, `points.py`, `gated.py` and `cover.py`) may be as clever as it likes, since
nothing of it is trusted: a proof counts when `checker/` has accepted it, which imports nothing of the search or of the
models.
"""

from statetrack.certificates.certify import Certificate, certify
from statetrack.certificates.folder import certify_folder

__all__ = ["Certificate", "certify", "certify_folder"]
