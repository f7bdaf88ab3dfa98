"""The names of finite simple groups, by their order.

No two simple groups of the orders met here have the same order, but for A8 and PSL(3,4), both of order 20160: A8 has
elements of order 15, PSL(3,4) none above 7.
"""

from __future__ import annotations

import math
from functools import cache

OTHERS = {
    5616: "PSL(3,3)", 6048: "PSU(3,3)", 7920: "M11", 25920: "PSp(4,3)", 29120: "Sz(8)", 62400: "PSU(3,4)",
    95040: "M12", 126000: "PSU(3,5)", 175560: "J1", 372000: "PSL(3,5)", 443520: "M22",
}  # fmt: skip
LARGEST_FIELD = 125


def prime_factors(n: int) -> list[int]:
    """With multiplicity, in ascending order.

    >>> prime_factors(60)
    [2, 2, 3, 5]
    """
    factors, p = [], 2
    while n > 1:
        p = p if n % p == 0 else next(q for q in range(p + 1, n + 1) if n % q == 0 or q * q > n)
        p = p if n % p == 0 else n
        factors.append(p)
        n //= p
    return factors


@cache
def _by_order() -> dict[int, str]:
    """PSL(2,q) has the order q(q^2-1)/gcd(2,q-1); A5, A6, PSL(2,7) are the usual names of the first ones."""
    names = dict(OTHERS)
    for q in range(4, LARGEST_FIELD + 1):
        if len(set(prime_factors(q))) == 1:
            names[q * (q * q - 1) // math.gcd(2, q - 1)] = f"PSL(2,{q})"
    for n in range(5, 13):
        names[math.factorial(n) // 2] = f"A{n}"
    return names


def simple_name(order: int, largest_element_order: int) -> str:
    """The name of the simple group with this order and this largest order of an element.

    >>> simple_name(5, 5), simple_name(168, 7), simple_name(20160, 15), simple_name(20160, 7)
    ('C5', 'PSL(2,7)', 'A8', 'PSL(3,4)')
    """
    if len(prime_factors(order)) == 1:
        return f"C{order}"
    if order == 20160:
        return "A8" if largest_element_order == 15 else "PSL(3,4)"
    return _by_order().get(order, f"a simple group of order {order}")
