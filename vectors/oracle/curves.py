"""The groups: ristretto255, edwards25519, edwards448, P-256, secp256k1, BLS12-381 and BN254, each with its encoding.

A group has `order`, `generator`, `identity`, `add`, `negate`, `multiply`, `encode`, `decode` (strict: canonical, in the
prime-order group), and the byte order and length of its scalars. Points are pairs of affine coordinates; the identity of
a Weierstrass curve is None.
"""

from fields import prime_field, quadratic_extension


class Group:
    """The operations that all groups have."""

    name = None
    order = 0
    scalar_length = 32
    byte_order = "big"

    def multiply(self, scalar, point):
        result = self.identity
        for bit in bin(scalar % self.order)[2:]:
            result = self.add(result, result)
            if bit == "1":
                result = self.add(result, point)
        return result

    def multiply_integer(self, integer, point):
        """The product with an integer that is not reduced modulo the order, for cofactors and orders."""
        result = self.identity
        for bit in bin(integer)[2:]:
            result = self.add(result, result)
            if bit == "1":
                result = self.add(result, point)
        return result

    def base(self, scalar):
        return self.multiply(scalar, self.generator)

    def sum(self, points):
        result = self.identity
        for point in points:
            result = self.add(result, point)
        return result

    def encode_scalar(self, scalar):
        return (scalar % self.order).to_bytes(self.scalar_length, self.byte_order)

    def decode_scalar(self, data):
        if len(data) != self.scalar_length:
            raise ValueError("length of a scalar")
        scalar = int.from_bytes(data, self.byte_order)
        if scalar >= self.order:
            raise ValueError("scalar not canonical")
        return scalar


class Weierstrass(Group):
    """y^2 = x^3 + a x + b."""

    identity = None

    def __init__(self, name, field, a, b, order, x, y, cofactor=1):
        self.name, self.field, self.order, self.cofactor = name, field, order, cofactor
        self.a, self.b = a, b
        self.generator = (x, y)
        assert self.is_on_curve(self.generator)

    def is_on_curve(self, point):
        x, y = point
        return y * y == x * x * x + self.a * x + self.b

    def add(self, p, q):
        if p is None:
            return q
        if q is None:
            return p
        slope = self.slope(p, q)
        if slope is None:
            return None
        x = slope * slope - p[0] - q[0]
        return x, slope * (p[0] - x) - p[1]

    def slope(self, p, q):
        """The slope of the line through p and q; None if it is vertical."""
        if p[0] != q[0]:
            return (q[1] - p[1]) / (q[0] - p[0])
        if p[1] == q[1] and p[1]:
            return (p[0] * p[0] * 3 + self.a) / (p[1] * 2)
        return None

    def negate(self, p):
        return None if p is None else (p[0], -p[1])

    def check(self, point):
        """Membership in the prime-order group."""
        if not self.is_on_curve(point):
            raise ValueError("not on the curve")
        if self.cofactor != 1 and self.multiply_integer(self.order, point) is not None:
            raise ValueError("outside the prime-order subgroup")
        return point

    def lift(self, x):
        """One of the points with this x."""
        y = (x * x * x + self.a * x + self.b).sqrt()
        if y is None:
            raise ValueError("no point has this x")
        return x, y


class Sec1(Weierstrass):
    """A curve with the compressed encoding of SEC 1, section 2.3.3."""

    def encode(self, point):
        x, y = point
        return bytes([2 + y.sgn0()]) + x.n.to_bytes(32, "big")

    def decode(self, data):
        x = int.from_bytes(data[1:], "big")
        if len(data) != 33 or data[0] not in (2, 3) or x >= self.field.p:
            raise ValueError("not a compressed point")
        x, y = self.lift(self.field(x))
        return x, y if y.sgn0() == data[0] - 2 else -y


class Zcash(Weierstrass):
    """With the compressed encoding of draft-irtf-cfrg-pairing-friendly-curves, appendix C: big-endian, the coefficient of
    i first, and in the three highest bits: compressed, identity, y above -y."""

    def encode(self, point):
        length = 48 * (1 if issubclass(self.field, type(self).prime) else 2)
        if point is None:
            return bytes([0xC0]) + bytes(length - 1)
        x, y = point
        data = x.n if length == 48 else (x.b.n << 384) + x.a.n
        flags = 0x80 | (0x20 if y.is_larger() else 0)
        data = bytearray(data.to_bytes(length, "big"))
        data[0] |= flags
        return bytes(data)

    def decode(self, data):
        length = 48 * (1 if issubclass(self.field, type(self).prime) else 2)
        if len(data) != length or not data[0] & 0x80:
            raise ValueError("not a compressed point")
        if data[0] & 0x40:
            if data != self.encode(None):
                raise ValueError("not the identity's encoding")
            return None
        words = bytes([data[0] & 0x1F]) + data[1:]
        parts = [int.from_bytes(words[i : i + 48], "big") for i in range(0, length, 48)]
        if any(part >= type(self).prime.p for part in parts):
            raise ValueError("coordinate not canonical")
        x, y = self.lift(self.field(*reversed(parts)))
        return self.check((x, y if y.is_larger() == bool(data[0] & 0x20) else -y))


class Gnark(Weierstrass):
    """With the compressed encoding of gnark-crypto, as spec/groups.md has it: big-endian, the coefficient of i first, and
    in the two highest bits 10 for the smaller y, 11 for the larger, 01 for the identity."""

    def length(self):
        return 32 if self.field is BN_FP else 64

    def encode(self, point):
        length = self.length()
        if point is None:
            return bytes([0x40]) + bytes(length - 1)
        x, y = point
        data = bytearray((x.n if length == 32 else (x.b.n << 256) + x.a.n).to_bytes(length, "big"))
        data[0] |= 0xC0 if y.is_larger() else 0x80
        return bytes(data)

    def decode(self, data):
        if len(data) != self.length():
            raise ValueError("length of a point")
        flags, words = data[0] >> 6, bytes([data[0] & 0x3F]) + data[1:]
        if flags == 1 and data == self.encode(None):
            return None
        parts = [int.from_bytes(words[i : i + 32], "big") for i in range(0, len(words), 32)]
        if flags < 2 or any(part >= BN_FP.p for part in parts):
            raise ValueError("not a compressed point")
        x, y = self.lift(self.field(*reversed(parts)))
        return self.check((x, y if y.is_larger() == (flags == 3) else -y))


class Edwards(Group):
    """a x^2 + y^2 = 1 + d x^2 y^2, with the encoding of RFC 8032, sections 5.1.2 and 5.2.2."""

    byte_order = "little"

    def __init__(self, name, field, a, d, order, x, y, length):
        self.name, self.field, self.order = name, field, order
        self.a, self.d = field(a), field(d)
        self.generator, self.identity = (field(x), field(y)), (field(0), field(1))
        self.length = self.scalar_length = length
        assert self.is_on_curve(self.generator)

    def is_on_curve(self, point):
        x2, y2 = point[0] ** 2, point[1] ** 2
        return self.a * x2 + y2 == self.field(1) + self.d * x2 * y2

    def add(self, p, q):
        (x1, y1), (x2, y2) = p, q
        xy, one = self.d * x1 * x2 * y1 * y2, self.field(1)
        # One inversion for both denominators, none of which is zero: d is not a square.
        inverse = ((one + xy) * (one - xy)).inverse()
        return (x1 * y2 + y1 * x2) * (one - xy) * inverse, (y1 * y2 - self.a * x1 * x2) * (one + xy) * inverse

    def negate(self, p):
        return -p[0], p[1]

    def encode(self, point):
        x, y = point
        return (y.n + (x.sgn0() << (8 * self.length - 1))).to_bytes(self.length, "little")

    def decode(self, data):
        if len(data) != self.length:
            raise ValueError("length of a point")
        number = int.from_bytes(data, "little")
        sign, number = number >> (8 * self.length - 1), number & ((1 << (8 * self.length - 1)) - 1)
        if number >= self.field.p:
            raise ValueError("coordinate not canonical")
        y = self.field(number)
        x = ((self.field(1) - y * y) / (self.a - self.d * y * y)).sqrt()
        if x is None or (not x and sign):
            raise ValueError("no point has this y")
        point = (x if x.sgn0() == sign else -x, y)
        if self.multiply_integer(self.order, point) != self.identity:
            raise ValueError("outside the prime-order subgroup")
        return point


class RistrettoPoint(tuple):
    """One of the points that stand for an element; RFC 9496, section 4.5, says when two stand for the same."""

    def __eq__(self, other):
        (x1, y1), (x2, y2) = self, other
        return x1 * y2 == y1 * x2 or y1 * y2 == x1 * x2

    def __ne__(self, other):
        return not self == other


class Ristretto(Edwards):
    """RFC 9496, section 4, on the points of edwards25519."""

    def __init__(self, edwards):
        super().__init__(
            "ristretto255", edwards.field, -1, edwards.d.n, edwards.order, *(c.n for c in edwards.generator), 32
        )
        self.sqrt_m1 = self.field(2) ** ((self.field.p - 1) // 4)
        self.invsqrt_a_minus_d = self.sqrt_ratio(self.field(1), self.a - self.d)[1]
        self.generator, self.identity = RistrettoPoint(self.generator), RistrettoPoint(self.identity)

    def add(self, p, q):
        return RistrettoPoint(super().add(p, q))

    def absolute(self, x):
        return -x if x.sgn0() else x

    def sqrt_ratio(self, u, v):
        """SQRT_RATIO_M1, section 4.2: whether u/v is a square, and the non-negative root of it or of i u/v."""
        ratio = u / v
        root = ratio.sqrt()
        if root is not None:
            return True, self.absolute(root)
        return False, self.absolute((ratio * self.sqrt_m1).sqrt())

    def decode(self, data):
        number = int.from_bytes(data, "little")
        if len(data) != 32 or number >= self.field.p or number % 2:
            raise ValueError("not canonical")
        s, one = self.field(number), self.field(1)
        u1, u2 = one - s * s, one + s * s
        v = -(self.d * u1 * u1) - u2 * u2
        was_square, inverse_root = self.sqrt_ratio(one, v * u2 * u2)
        den_x = inverse_root * u2
        den_y = inverse_root * den_x * v
        x = self.absolute(s * 2 * den_x)
        y = u1 * den_y
        if not was_square or (x * y).sgn0() or not y:
            raise ValueError("not an element")
        return RistrettoPoint((x, y))

    def encode(self, point):
        x, y = point
        z, t, one = self.field(1), x * y, self.field(1)
        u1, u2 = (z + y) * (z - y), x * y
        _, inverse_root = self.sqrt_ratio(one, u1 * u2 * u2)
        den1, den2 = inverse_root * u1, inverse_root * u2
        z_inv = den1 * den2 * t
        if (t * z_inv).sgn0():
            x, y, den_inv = y * self.sqrt_m1, x * self.sqrt_m1, den1 * self.invsqrt_a_minus_d
        else:
            den_inv = den2
        if (x * z_inv).sgn0():
            y = -y
        return self.absolute(den_inv * (z - y)).n.to_bytes(32, "little")


def hexadecimal(text):
    return int(text.replace(" ", ""), 16)


P25519 = prime_field(2**255 - 19)
ED25519 = Edwards(
    "ed25519",
    P25519,
    -1,
    -121665 * pow(121666, -1, 2**255 - 19),
    2**252 + 27742317777372353535851937790883648493,
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    46316835694926478169428394003475163141307993866256225615783033603165251855960,
    32,
)
RISTRETTO255 = Ristretto(ED25519)

P448 = prime_field(2**448 - 2**224 - 1)
ED448 = Edwards(
    "ed448",
    P448,
    1,
    -39081,
    2**446 - 13818066809895115352007386748515426880336692474882178609894547503885,
    224580040295924300187604334099896036246789641632564134246125461686950415467406032909029192869357953282578032075146446173674602635247710,
    298819210078481492676017930443930673437544040154080242095928241372331506189835876003536878655418784733982303233503462500531545062832660,
    57,
)

PRIME256 = prime_field(2**256 - 2**224 + 2**192 + 2**96 - 1)
P256 = Sec1(
    "p256",
    PRIME256,
    PRIME256(-3),
    PRIME256(hexadecimal("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b")),
    hexadecimal("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
    PRIME256(hexadecimal("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296")),
    PRIME256(hexadecimal("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")),
)
PRIME256K1 = prime_field(2**256 - 2**32 - 977)
SECP256K1 = Sec1(
    "secp256k1",
    PRIME256K1,
    PRIME256K1(0),
    PRIME256K1(7),
    hexadecimal("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"),
    PRIME256K1(hexadecimal("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")),
    PRIME256K1(hexadecimal("483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")),
)

# BLS12-381 from its parameter: p, the order and the cofactors are polynomials in it.
BLS_X = -0xD201000000010000
BLS_ORDER = BLS_X**4 - BLS_X**2 + 1
BLS_FP = prime_field((BLS_X - 1) ** 2 * BLS_ORDER // 3 + BLS_X)
BLS_FP2 = quadratic_extension(BLS_FP)
Zcash.prime = BLS_FP
BLS_G1 = Zcash(
    "bls12-381 G1",
    BLS_FP,
    BLS_FP(0),
    BLS_FP(4),
    BLS_ORDER,
    BLS_FP(
        hexadecimal("17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb")
    ),
    BLS_FP(
        hexadecimal("08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1")
    ),
    (BLS_X - 1) ** 2 // 3,
)
BLS_G2 = Zcash(
    "bls12-381 G2",
    BLS_FP2,
    BLS_FP2(0),
    BLS_FP2(4, 4),
    BLS_ORDER,
    BLS_FP2(
        hexadecimal("024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"),
        hexadecimal("13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"),
    ),
    BLS_FP2(
        hexadecimal("0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"),
        hexadecimal("0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be"),
    ),
    (BLS_X**8 - 4 * BLS_X**7 + 5 * BLS_X**6 - 4 * BLS_X**4 + 6 * BLS_X**3 - 4 * BLS_X**2 - 4 * BLS_X + 13) // 9,
)

# BN254 from its parameter.
BN_X = 4965661367192848881
BN_ORDER = 36 * BN_X**4 + 36 * BN_X**3 + 18 * BN_X**2 + 6 * BN_X + 1
BN_FP = prime_field(BN_ORDER + 6 * BN_X**2)
BN_FP2 = quadratic_extension(BN_FP)
BN_XI = BN_FP2(9, 1)
BN_G1 = Gnark("bn254 G1", BN_FP, BN_FP(0), BN_FP(3), BN_ORDER, BN_FP(1), BN_FP(2))
BN_G2 = Gnark(
    "bn254 G2",
    BN_FP2,
    BN_FP2(0),
    BN_FP2(3) / BN_XI,
    BN_ORDER,
    BN_FP2(
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
    ),
    BN_FP2(
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
    ),
    2 * BN_FP.p - BN_ORDER,
)
