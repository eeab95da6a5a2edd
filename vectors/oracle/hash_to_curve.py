"""Hashing to the groups: RFC 9380, and RFC 9496 for ristretto255."""

import hashlib

import curves
import isogenies
from pairing import BN254


def expand_message_xmd(algorithm, message, tag, length):
    """RFC 9380, section 5.3.1."""
    size, block = hashlib.new(algorithm).digest_size, hashlib.new(algorithm).block_size

    def digest(data):
        return hashlib.new(algorithm, data).digest()

    if len(tag) > 255:
        tag = digest(b"H2C-OVERSIZE-DST-" + tag)
    tag += bytes([len(tag)])
    first = digest(bytes(block) + message + length.to_bytes(2, "big") + b"\0" + tag)
    out, previous = b"", bytes(size)
    for i in range(1, -(-length // size) + 1):
        previous = digest(bytes(a ^ b for a, b in zip(first, previous)) + bytes([i]) + tag)
        out += previous
    return out[:length]


def expand_message_xof(algorithm, security, message, tag, length):
    """RFC 9380, section 5.3.2, at `security` bits."""
    if len(tag) > 255:
        tag = hashlib.new(algorithm, b"H2C-OVERSIZE-DST-" + tag).digest(2 * security // 8)
    return hashlib.new(algorithm, message + length.to_bytes(2, "big") + tag + bytes([len(tag)])).digest(length)


def hash_to_field(field, uniform, count):
    """RFC 9380, section 5.2, from the expanded message."""
    prime_parts = 1 if issubclass(field, curves.BLS_FP.__bases__[0]) else 2
    size = len(uniform) // (count * prime_parts)
    numbers = [int.from_bytes(uniform[i : i + size], "big") for i in range(0, len(uniform), size)]
    return [field(*numbers[i : i + prime_parts]) for i in range(0, len(numbers), prime_parts)]


def with_sign_of(y, u):
    return y if y.sgn0() == u.sgn0() else -y


def simplified_swu(u, a, b, z):
    """RFC 9380, section 6.6.2, as described there, not in its straight-line version."""
    one = type(u)(1)
    denominator = z * z * u * u * u * u + z * u * u
    x = (-b / a) * (one + denominator.inverse()) if denominator else b / (z * a)
    square = x * x * x + a * x + b
    if not square.is_square():
        x = z * u * u * x
        square = x * x * x + a * x + b
    return x, with_sign_of(square.sqrt(), u)


def isogeny(point, field, coefficients):
    """RFC 9380, section 6.6.3 and appendix E."""
    x, y = point

    def evaluate(polynomial):
        result = field(0)
        for c in reversed(polynomial):
            result = result * x + (field(*c) if isinstance(c, tuple) else field(c))
        return result

    x_numerator, x_denominator, y_numerator, y_denominator = map(evaluate, coefficients)
    if not x_denominator or not y_denominator:
        return None
    return x_numerator / x_denominator, y * y_numerator / y_denominator


def elligator2(u, j, z):
    """RFC 9380, section 6.7.1, for K = 1."""
    field = type(u)
    j, one = field(j), field(1)
    x = -j * (one + field(z) * u * u).inverse()
    x = x if x else -j
    square = x * x * x + j * x * x + x
    sign = 1
    if not square.is_square():
        x, sign = -x - j, 0
        square = x * x * x + j * x * x + x
    y = square.sqrt()
    return x, y if y.sgn0() == sign else -y


def curve25519_to_edwards25519(point):
    """RFC 9380, appendix D.1, with c1 = sqrt(-486664), sgn0(c1) = 0."""
    s, t = point
    field = type(s)
    c1 = field(-486664).sqrt()
    c1 = -c1 if c1.sgn0() else c1
    one = field(1)
    if not t or not s + one:
        return field(0), one
    return c1 * s / t, (s - one) / (s + one)


def curve448_to_edwards448(point):
    """The 4-isogeny of RFC 7748, section 4.2."""
    u, v = point
    field = type(u)
    u2, v2, one = u * u, v * v, field(1)
    x_denominator = u2 * u2 - u2 * 2 + v2 * 4 + one
    y_denominator = u2 * u2 * u - u2 * v2 * 2 - u2 * u * 2 - v2 * 2 + u
    if not x_denominator or not y_denominator:
        return field(0), one
    return v * 4 * (u2 - one) / x_denominator, -(u2 * u2 * u - u2 * u * 2 - u * v2 * 4 + u) / y_denominator


# RFC 9496, section 4.1.
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235


def ristretto_map(data):
    """MAP of RFC 9496, section 4.3.4, of 32 bytes."""
    group = curves.RISTRETTO255
    field, d, one = group.field, group.d, group.field(1)
    t = field(int.from_bytes(data, "little") % 2**255)
    r = group.sqrt_m1 * t * t
    u = (r + one) * (one - d * d)
    v = (-one - r * d) * (r + d)
    was_square, s = group.sqrt_ratio(u, v) if u else (True, field(0))
    if not was_square:
        s = -group.absolute(s * t)
    c = -one if was_square else r
    n = c * (r - one) * (d - one) * (d - one) - v
    w0, w1, w2, w3 = s * 2 * v, n * field(SQRT_AD_MINUS_ONE), one - s * s, one + s * s
    return w0 / w1, w2 / w3


def svdw_constant(curve):
    """Z of RFC 9380, appendix H.1, for A = 0: the first of 1, -1, 2, -2, ... that meets its criteria."""
    field = curve.field

    def g(x):
        return x * x * x + curve.b

    for magnitude in range(1, 100):
        for z in (field(magnitude), field(-magnitude)):
            h = -(z * z * 3) / (g(z) * 4)
            if h and h.is_square() and (g(z).is_square() or g(-z / field(2)).is_square()):
                return z
    raise ValueError("no constant")


def svdw(u, curve, z):
    """The map of Shallue and van de Woestijne, RFC 9380, section 6.6.1 and appendix F.1."""
    field, one = curve.field, curve.field(1)

    def g(x):
        return x * x * x + curve.a * x + curve.b

    c1, c2 = g(z), -z / field(2)
    c3 = (-c1 * (z * z * 3 + curve.a * 4)).sqrt()
    c3 = -c3 if c3.sgn0() else c3
    c4 = -c1 * 4 / (z * z * 3 + curve.a * 4)
    t1 = u * u * c1
    t2, t1 = one + t1, one - t1
    t3 = (t1 * t2).inverse()
    t4 = u * t1 * t3 * c3
    candidates = (c2 - t4, c2 + t4, (t2 * t2 * t3) * (t2 * t2 * t3) * c4 + z)
    x = next(x for x in candidates if g(x).is_square())
    return x, with_sign_of(g(x).sqrt(), u)


def hash_to_ristretto255(message, tag):
    """RFC 9380, appendix B."""
    uniform = expand_message_xmd("sha512", message, tag, 64)
    return curves.RISTRETTO255.add(ristretto_map(uniform[:32]), ristretto_map(uniform[32:]))


def hash_to_curve(suite, message, tag):
    """hash_to_curve of RFC 9380, section 3, for a suite of `SUITES`: two maps, their sum, the cofactor cleared."""
    group, expand, length, to_point, cofactor = SUITES[suite]
    elements = 2 if len(vars_of(group.field)) == 1 else 4
    points = [to_point(u) for u in hash_to_field(group.field, expand(message, tag, elements * length), 2)]
    point = group.add(*points)
    return cofactor(point) if callable(cofactor) else group.multiply_integer(cofactor, point)


def clear_bn254_cofactor(p):
    """Fuentes-Castaneda, Knapp and Rodriguez-Henriquez, SAC 2011: x P + psi(3 x P) + psi^2(x P) + psi^3(P), where psi is
    the Frobenius map between untwisting and twisting."""
    psi, multiply = BN254.frobenius, curves.BN_G2.multiply_integer
    xp = multiply(curves.BN_X, p)
    return curves.BN_G2.sum([xp, psi(multiply(3, xp)), psi(psi(xp)), psi(psi(psi(p)))])


def vars_of(field):
    """The coordinates of a field's elements."""
    return field.__bases__[0].__slots__


def xmd(algorithm):
    return lambda message, tag, length: expand_message_xmd(algorithm, message, tag, length)


def sswu(group, a, b, z, coefficients=None):
    field = group.field
    a, b, z = field(*a), field(*b), field(*z)
    if coefficients is None:
        return lambda u: simplified_swu(u, a, b, z)
    return lambda u: isogeny(simplified_swu(u, a, b, z), field, coefficients)


# RFC 9380, section 8, and gnark-crypto's for BN254: group, expansion, bytes a field element, map, effective cofactor.
SUITES = {
    "P256_XMD:SHA-256_SSWU_RO_": (
        curves.P256,
        xmd("sha256"),
        48,
        sswu(curves.P256, (-3,), (curves.P256.b.n,), (-10,)),
        1,
    ),
    "secp256k1_XMD:SHA-256_SSWU_RO_": (
        curves.SECP256K1,
        xmd("sha256"),
        48,
        sswu(
            curves.SECP256K1,
            (0x3F8731ABDD661ADCA08A5558F0F5D272E953D363CB6F0E5D405447C01A444533,),
            (1771,),
            (-11,),
            isogenies.SECP256K1,
        ),
        1,
    ),
    "edwards25519_XMD:SHA-512_ELL2_RO_": (
        curves.ED25519,
        xmd("sha512"),
        48,
        lambda u: curve25519_to_edwards25519(elligator2(u, 486662, 2)),
        8,
    ),
    "edwards448_XOF:SHAKE256_ELL2_RO_": (
        curves.ED448,
        lambda message, tag, length: expand_message_xof("shake_256", 224, message, tag, length),
        84,
        lambda u: curve448_to_edwards448(elligator2(u, 156326, -1)),
        4,
    ),
    "BLS12381G1_XMD:SHA-256_SSWU_RO_": (
        curves.BLS_G1,
        xmd("sha256"),
        64,
        sswu(
            curves.BLS_G1,
            (0x144698A3B8E9433D693A02C96D4982B0EA985383EE66A8D8E8981AEFD881AC98936F8DA0E0F97F5CF428082D584C1D,),
            (0x12E2908D11688030018B12E8753EEE3B2016C1F0F24F4070A0B9C14FCEF35EF55A23215A316CEAA5D1CC48E98E172BE0,),
            (11,),
            isogenies.BLS12381_G1,
        ),
        1 - curves.BLS_X,
    ),
    "BLS12381G2_XMD:SHA-256_SSWU_RO_": (
        curves.BLS_G2,
        xmd("sha256"),
        64,
        sswu(curves.BLS_G2, (0, 240), (1012, 1012), (-2, -1), isogenies.BLS12381_G2),
        # h_eff of section 8.8.2: 3 (x^2 - 1) times the cofactor of the curve.
        3 * (curves.BLS_X**2 - 1) * curves.BLS_G2.cofactor,
    ),
    "BN254G1_XMD:SHA-256_SVDW_RO_": (
        curves.BN_G1,
        xmd("sha256"),
        48,
        lambda u: svdw(u, curves.BN_G1, svdw_constant(curves.BN_G1)),
        1,
    ),
    "BN254G2_XMD:SHA-256_SVDW_RO_": (
        curves.BN_G2,
        xmd("sha256"),
        48,
        lambda u: svdw(u, curves.BN_G2, svdw_constant(curves.BN_G2)),
        clear_bn254_cofactor,
    ),
}
