"""Signing with a nonce that is known in advance: spec/ecdsa.md, "Signing". Keys and results of the service: the same document."""

import hashlib

import keys
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
    return {
        "public_key": group.encode(public).hex(),
        "R": group.encode(element).hex(),
        "delta": encode(delta).hex(),
        "raw": (encode(r) + encode(s)).hex(),
        "der": der(encode(r) + encode(s)).hex(),
        "recovery_id": recovery,
        "low_s": (encode(r) + encode(low)).hex(),
        "low_s_recovery_id": recovery ^ (low != s),
    }


def der(signature):
    """r and s as most software has them."""
    body = integer(signature[:32]) + integer(signature[32:])
    return bytes([0x30, len(body)]) + body


def verifies(group, public, digest, signature, low_s):
    """FIPS 186-5, section 6.4.2; where the lower s counts alone, of that one."""
    order = group.order
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if len(signature) != 64 or not 0 < r < order or not 0 < s < order or (low_s and s > order - s):
        return False
    inverse = pow(s, -1, order)
    e = int.from_bytes(digest, "big")
    terms = [group.base(e * inverse % order), group.multiply_integer(r * inverse % order, public)]
    return int.from_bytes(group.encode(group.sum(terms))[1:], "big") % order == r


def check_key(file):
    """A key of the service, and a result with a nonce that is told."""
    curve = file["suite"].removeprefix("ecdsa-")
    group, low_s = GROUPS[curve], curve == "secp256k1"
    order = group.order
    key = keys.Key(group, file)
    assert key.k >= 2 and key.n >= 2 * key.k - 1, "no honest majority"
    uncompressed = bytes.fromhex(file["uncompressed"])
    x, y = uncompressed[1:33], uncompressed[33:]
    assert uncompressed[0] == 4 and len(y) == 32
    assert bytes([2 | y[-1] & 1]) + x == group.encode(key.public_key)
    message, nonce = bytes.fromhex(file["statement"]), int(file["nonce"], 16)
    digest = hashlib.sha256(message).digest()
    r = int.from_bytes(group.encode(group.base(nonce))[1:], "big") % order
    s = pow(nonce, -1, order) * (int.from_bytes(digest, "big") + r * key.secret) % order
    s = min(s, order - s) if low_s else s
    result = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    assert result.hex() == file["result"] and der(result).hex() == file["der"]
    assert verifies(group, key.public_key, digest, result, low_s)
    negated = r.to_bytes(32, "big") + (order - s).to_bytes(32, "big")
    assert verifies(group, key.public_key, digest, negated, low_s) == (not low_s)
    assert not verifies(group, key.public_key, hashlib.sha256(message + b".").digest(), result, low_s)
    return f"{key.k} of {key.n}, a signature"


def check(file):
    if "suite" in file:
        return check_key(file)
    for case in file["cases"]:
        given = {name: bytes.fromhex(case[name]) for name in ("x", "k", "digest", "session")}
        x, k = (int.from_bytes(given[name], "big") for name in ("x", "k"))
        made = sign(file["group"], x, k, given["digest"], given["session"])
        for name, value in made.items():
            if case[name] != value:
                raise ValueError(f"{name}: {case[name]} and not {value}")
    return f"{len(file['cases'])} signatures"
