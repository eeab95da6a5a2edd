"""Pairings of BLS12-381 and BN254: the Miller loop with affine lines and one plain final exponentiation."""

from curves import BLS_FP2, BLS_G1, BLS_G2, BLS_X, BN_G1, BN_G2, BN_X, BN_XI
from fields import twelfth_extension


class Pairing:
    """`twist` says which coordinates of G2's curve reach the curve over Fp12: (x w^(2 twist), y w^(3 twist))."""

    def __init__(self, g1, g2, xi, twist, loop, frobenius_steps=False):
        self.g1, self.g2, self.twist, self.loop = g1, g2, twist, loop
        self.fp12 = twelfth_extension(xi)
        self.xi, self.frobenius_steps = xi, frobenius_steps

    def line(self, t, q, p):
        """The line through t and q (the tangent if they are equal), at p."""
        slope = self.g2.slope(t, q)
        field, monomial, twist = self.g2.field, self.fp12.monomial, self.twist
        x, y = (field(c) for c in p)
        if slope is None:
            return monomial(x, 0) + monomial(-t[0], 2 * twist)
        return monomial(y, 0) + monomial(slope * t[0] - t[1], 3 * twist) + monomial(-(slope * x), twist)

    def miller(self, p, q):
        if p is None or q is None:
            return self.fp12.one()
        f, t = self.fp12.one(), q
        for bit in bin(abs(self.loop))[3:]:
            f, t = f * f * self.line(t, t, p), self.g2.add(t, t)
            if bit == "1":
                f, t = f * self.line(t, q, p), self.g2.add(t, q)
        if self.loop < 0:
            f, t = f.conjugate(), self.g2.negate(t)
        if self.frobenius_steps:
            q1 = self.frobenius(q)
            q2 = self.g2.negate(self.frobenius(q1))
            f, t = f * self.line(t, q1, p), self.g2.add(t, q1)
            f = f * self.line(t, q2, p)
        return f

    def frobenius(self, q):
        """The p-th power of the untwisted point, twisted again."""
        prime = self.g1.field.p
        exponent = (prime - 1) // 6
        gamma = self.xi**exponent
        if self.twist < 0:
            gamma = gamma.inverse()
        return q[0].conjugate() * gamma * gamma, q[1].conjugate() * gamma * gamma * gamma

    def final_power(self, f):
        """f^((p^12 - 1) / r)."""
        prime = self.g1.field.p
        f = f.conjugate() * f.inverse()
        return f ** ((prime**6 + 1) // self.g1.order)

    def pair(self, p, q):
        return self.final_power(self.miller(p, q))

    def product_is_one(self, *pairs):
        product = self.fp12.one()
        for p, q in pairs:
            product = product * self.miller(p, q)
        return self.final_power(product) == self.fp12.one()


BLS12_381 = Pairing(BLS_G1, BLS_G2, BLS_FP2(1, 1), -1, BLS_X)
BN254 = Pairing(BN_G1, BN_G2, BN_XI, 1, 6 * BN_X + 2, frobenius_steps=True)
