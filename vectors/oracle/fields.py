"""Finite fields: prime fields, their quadratic extensions with i^2 = -1, and the twelfth-degree extension of a pairing."""


class Fp:
    """An integer modulo the prime p of its class; see `prime_field`."""

    p = 0
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n % self.p

    @classmethod
    def order(cls):
        return cls.p

    def __add__(self, other):
        return type(self)(self.n + other.n)

    def __sub__(self, other):
        return type(self)(self.n - other.n)

    def __mul__(self, other):
        return type(self)(self.n * (other if isinstance(other, int) else other.n))

    def __neg__(self):
        return type(self)(-self.n)

    def __truediv__(self, other):
        return self * other.inverse()

    def __pow__(self, exponent):
        return type(self)(pow(self.n, exponent, self.p))

    def __eq__(self, other):
        return self.n == other.n

    def __bool__(self):
        return self.n != 0

    def inverse(self):
        """1 / self; 0 for 0, as in RFC 9380."""
        return type(self)(pow(self.n, -1, self.p) if self.n else 0)

    def sgn0(self):
        """RFC 9380, section 4.1."""
        return self.n % 2

    def is_square(self):
        return not self or self ** ((self.p - 1) // 2) == type(self)(1)

    def sqrt(self):
        """A square root; None where there is none."""
        return tonelli_shanks(self)

    def is_larger(self):
        """Whether self, as an integer, is above its negative."""
        return self.n > self.p // 2


def prime_field(prime):
    return type("Fp", (Fp,), {"p": prime, "__slots__": ()})


class Fp2:
    """a + b i over the field `base`, i^2 = -1; see `quadratic_extension`."""

    base = Fp
    __slots__ = ("a", "b")

    def __init__(self, a, b=0):
        self.a = self.base(a) if isinstance(a, int) else a
        self.b = self.base(b) if isinstance(b, int) else b

    @classmethod
    def order(cls):
        return cls.base.p**2

    def __add__(self, other):
        return type(self)(self.a + other.a, self.b + other.b)

    def __sub__(self, other):
        return type(self)(self.a - other.a, self.b - other.b)

    def __mul__(self, other):
        if isinstance(other, int):
            return type(self)(self.a * other, self.b * other)
        p, a, b, c, d = self.base.p, self.a.n, self.b.n, other.a.n, other.b.n
        return type(self)((a * c - b * d) % p, (a * d + b * c) % p)

    def __neg__(self):
        return type(self)(-self.a, -self.b)

    def __truediv__(self, other):
        return self * other.inverse()

    def __pow__(self, exponent):
        return power(self, exponent, type(self)(1))

    def __eq__(self, other):
        return self.a == other.a and self.b == other.b

    def __bool__(self):
        return bool(self.a) or bool(self.b)

    def conjugate(self):
        return type(self)(self.a, -self.b)

    def inverse(self):
        scale = (self.a * self.a + self.b * self.b).inverse()
        return type(self)(self.a * scale, -self.b * scale)

    def sgn0(self):
        return self.a.sgn0() if self.a else self.b.sgn0()

    def is_square(self):
        return (self.a * self.a + self.b * self.b).is_square()

    def sqrt(self):
        return tonelli_shanks(self)

    def is_larger(self):
        """Compared by the coefficient of i first, as in the encodings of BLS12-381."""
        return self.b.is_larger() if self.b else self.a.is_larger()


def quadratic_extension(base):
    return type("Fp2", (Fp2,), {"base": base, "__slots__": ()})


def power(base, exponent, one):
    """Square and multiply."""
    result = one
    for bit in bin(exponent)[2:]:
        result = result * result
        if bit == "1":
            result = result * base
    return result


def tonelli_shanks(square):
    """A square root in any field whose elements know the order of their field."""
    if not square:
        return square
    if not square.is_square():
        return None
    field = type(square)
    odd, twos = field.order() - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    root, rest = square ** ((odd + 1) // 2), square**odd
    generator = non_square(field) ** odd
    while rest != field(1):
        order, t = 0, rest
        while t != field(1):
            t, order = t * t, order + 1
        factor = generator
        for _ in range(twos - order - 1):
            factor = factor * factor
        root, generator, twos = root * factor, factor * factor, order
        rest = rest * generator
    return root


def non_square(field):
    small = (field(a) for a in range(2, 100)) if issubclass(field, Fp) else (field(a, 1) for a in range(1, 100))
    return next(element for element in small if not element.is_square())


class Fp12:
    """The sum of c[j] w^j, j = 0..5, over an Fp2, where w^6 = xi; see `twelfth_extension`."""

    xi = None
    __slots__ = ("c",)

    def __init__(self, coefficients):
        self.c = coefficients

    @classmethod
    def monomial(cls, coefficient, exponent):
        """coefficient * w^exponent, -6 < exponent < 6."""
        zero = type(coefficient)(0)
        if exponent < 0:
            coefficient, exponent = coefficient / cls.xi, exponent + 6
        return cls([coefficient if j == exponent else zero for j in range(6)])

    @classmethod
    def one(cls):
        return cls.monomial(type(cls.xi)(1), 0)

    def __add__(self, other):
        return type(self)([a + b for a, b in zip(self.c, other.c)])

    def __mul__(self, other):
        base = type(self.xi)
        p = base.base.p
        real, imaginary = [0] * 11, [0] * 11
        for i, x in enumerate(self.c):
            a, b = x.a.n, x.b.n
            if a or b:
                for j, y in enumerate(other.c):
                    c, d = y.a.n, y.b.n
                    real[i + j] += a * c - b * d
                    imaginary[i + j] += a * d + b * c
        terms = [base(a % p, b % p) for a, b in zip(real, imaginary)]
        return type(self)([terms[j] + terms[j + 6] * self.xi if j < 5 else terms[j] for j in range(6)])

    def __eq__(self, other):
        return all(a == b for a, b in zip(self.c, other.c))

    def __pow__(self, exponent):
        return power(self, exponent, self.one())

    def conjugate(self):
        """self^(p^6): w goes to -w."""
        return type(self)([-c if j % 2 else c for j, c in enumerate(self.c)])

    def inverse(self):
        # self * conjugate has even powers of w only: a0 + a1 v + a2 v^2 with v = w^2, v^3 = xi.
        a0, _, a1, _, a2, _ = (self * self.conjugate()).c
        xi = self.xi
        b0, b1, b2 = a0 * a0 - a1 * a2 * xi, a2 * a2 * xi - a0 * a1, a1 * a1 - a0 * a2
        scale = (a0 * b0 + (a1 * b2 + a2 * b1) * xi).inverse()
        zero = type(xi)(0)
        return self.conjugate() * type(self)([b0 * scale, zero, b1 * scale, zero, b2 * scale, zero])


def twelfth_extension(xi):
    return type("Fp12", (Fp12,), {"xi": xi, "__slots__": ()})
