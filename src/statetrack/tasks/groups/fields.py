"""Finite fields F_q of the few sizes that the projective groups need.

An element of F_{p^n} is the number whose base-p digits, low digit first, are its polynomial's coefficients from the
constant term up. Worked by hand in F_4 with x^2 + x + 1 = 0: 2 is x and 3 is x + 1, so 2 * 2 = x^2 = x + 1 = 3 and 2
+ 3 = 1.

>>> four = Field(4)
>>> four.times(2, 2), four.plus(2, 3)
(3, 1)
"""

from __future__ import annotations

# The polynomial that is zero in F_q, its coefficients from the constant term up.
POLYNOMIALS = {4: (1, 1, 1), 8: (1, 1, 0, 1), 9: (2, 1, 1)}


class Field:
    """F_q for a prime q, or for a q in POLYNOMIALS."""

    def __init__(self, q: int) -> None:
        self.q = q
        self.p = next(p for p in range(2, q + 1) if q % p == 0)
        self.polynomial = POLYNOMIALS.get(q, (0, 1))  # F_p is F_p[x] modulo x
        self.degree = len(self.polynomial) - 1

    @property
    def basis(self) -> list[int]:
        """1, x, x^2, ...: every element is a sum of these."""
        return [self.p**i for i in range(self.degree)]

    def plus(self, a: int, b: int) -> int:
        return self._number([x + y for x, y in zip(self._digits(a), self._digits(b))])

    def minus(self, a: int) -> int:
        return self._number([-x for x in self._digits(a)])

    def times(self, a: int, b: int) -> int:
        product = [0] * (2 * self.degree - 1)
        for i, x in enumerate(self._digits(a)):
            for j, y in enumerate(self._digits(b)):
                product[i + j] += x * y
        for top in reversed(range(self.degree, len(product))):  # x^degree = -(the polynomial's lower terms)
            for i, coefficient in enumerate(self.polynomial):
                product[top - self.degree + i] -= product[top] * coefficient if i < self.degree else 0
        return self._number(product[: self.degree])

    def inverse(self, a: int) -> int:
        return next(b for b in range(1, self.q) if self.times(a, b) == 1)

    def _digits(self, a: int) -> list[int]:
        return [a // self.p**i % self.p for i in range(self.degree)]

    def _number(self, digits: list[int]) -> int:
        return sum(digit % self.p * self.p**i for i, digit in enumerate(digits))
