"""How sure a measured share is."""

from __future__ import annotations

import math

Z95 = 1.959963984540054


def wilson(right: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of the share right / n.

    `right` may be a sum of n independent numbers in [0, 1]: the interval is then on the safe side, since no such number
    varies more than a coin does.

    >>> tuple(round(bound, 4) for bound in wilson(9, 10))
    (0.5958, 0.9821)
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = right / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)
