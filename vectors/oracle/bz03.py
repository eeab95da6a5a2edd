"""The threshold cipher of Baek and Zheng as a key encapsulation: spec/bz03.md."""

import sealing
from hash_to_curve import hash_to_curve
from keys import Key
from pairing import BLS12_381, BN254
from sg02 import check_payload, coin
from transcript import H

# Code of the suite, pairing, domain of the hash by which a header is bound.
SUITES = {
    "bz03-bls12381": (3, BLS12_381, "THETA-V01-CS03-bz03-validity-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"),
    "bz03-bn254": (4, BN254, "THETA-V01-CS04-bz03-validity-with-BN254G1_XMD:SHA-256_SVDW_RO_"),
}


def check(vector):
    code, pairing, domain = SUITES[vector["suite"]]
    g1, g2 = pairing.g1, pairing.g2
    key = Key(g1, vector)
    head = bytes.fromhex(vector["statement"])
    parts = sealing.header(head)
    assert (parts[0], parts[2]) == (code, key.id)
    capsule = parts[-1]
    first, second = len(g1.encode(g1.generator)), len(g2.encode(g2.generator))
    assert len(capsule) == 64 + 2 * first + second
    u = g1.decode(capsule[64 : 64 + first])
    u_second = g2.decode(capsule[64 + first : 64 + first + second])
    w = g1.decode(capsule[-first:])
    q = hash_to_curve(domain.split("-with-")[1], head[:-first], domain.encode())
    minus_u_second = g2.negate(u_second)
    assert pairing.product_is_one((u, g2.generator), (g1.generator, minus_u_second)), "u and u'"
    assert pairing.product_is_one((w, g2.generator), (q, minus_u_second)), "w"

    shares = [g1.decode(bytes.fromhex(share)) for share in vector["shares"]]
    assert shares == [g1.multiply(secret, u) for secret in key.secrets]
    party = key.verification_keys[0]
    assert pairing.product_is_one((shares[0], g2.generator), (party, minus_u_second)), "the first share"
    shared = key.combine(shares)
    mask = H("theta/bz03/wrap/v1", *key.parts(), ("u", g1.encode(u)), ("shared", g1.encode(shared)))[:32]
    payload_key = check_payload(key, vector, capsule, mask)
    r = coin(key, head[: -len(capsule)], payload_key, "encryption")
    assert u == g1.base(r) and shared == g1.multiply(r, key.public_key), "r follows from the payload key"
    return f"key, header, {key.n} shares, payload key, plaintext"
