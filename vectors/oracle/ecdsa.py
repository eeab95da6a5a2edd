"""Signing with a nonce that is known in advance: spec/ecdsa.md, "Signing"."""

from curves import P256, SECP256K1
from transcript import H, scalar

GROUPS = {"p256": P256, "secp256k1": SECP256K1}


def integer(data):
    """A DER INTEGER."""
    body = data.lstrip(b"\0")
    if body[0] >= 0x80:
        body = b"\0" + body
    return bytes([2, len(body)]) + body


def sign(name, x, k, digest, session):
    """Everything that signing makes of key x and nonce k."""
    group = GROUPS[name]
    order = group.order
    public, element = group.base(x), group.base(k)
    parts = (
        ("group", name.encode()),
        ("public key", group.encode(public)),
        ("R", group.encode(element)),
        ("digest", digest),
        ("session", session),
    )
    delta = scalar(group, H("theta/ecdsa/re-randomise/v1", *parts))
    shifted = group.encode(group.multiply_integer(delta, element))
    abscissa = int.from_bytes(shifted[1:], "big")
    r = abscissa % order
    e = int.from_bytes(digest, "big")
    s = pow(delta * k, -1, order) * (e + r * x) % order
    low = min(s, order - s)
    recovery = (shifted[0] & 1) | 2 * (abscissa >= order)
    encode = lambda number: number.to_bytes(32, "big")
    body = integer(encode(r)) + integer(encode(s))
    return {
        "public_key": group.encode(public).hex(),
        "R": group.encode(element).hex(),
        "delta": encode(delta).hex(),
        "raw": (encode(r) + encode(s)).hex(),
        "der": (bytes([0x30, len(body)]) + body).hex(),
        "recovery_id": recovery,
        "low_s": (encode(r) + encode(low)).hex(),
        "low_s_recovery_id": recovery ^ (low != s),
    }


def check(file):
    for case in file["cases"]:
        given = {name: bytes.fromhex(case[name]) for name in ("x", "k", "digest", "session")}
        x, k = (int.from_bytes(given[name], "big") for name in ("x", "k"))
        made = sign(file["group"], x, k, given["digest"], given["session"])
        for name, value in made.items():
            if case[name] != value:
                raise ValueError(f"{name}: {case[name]} and not {value}")
    return f"{len(file['cases'])} signatures"
