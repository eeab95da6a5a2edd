"""Threshold BLS signatures: spec/bls04.md."""

import curves
from hash_to_curve import hash_to_curve
from keys import Key
from pairing import BLS12_381, BN254

# Group of keys, group of signatures, hash to the latter.
FORMS = {
    "bls04-bls12381-min-pk": (curves.BLS_G1, curves.BLS_G2, "BLS12381G2_XMD:SHA-256_SSWU_RO_"),
    "bls04-bls12381-min-sig": (curves.BLS_G2, curves.BLS_G1, "BLS12381G1_XMD:SHA-256_SSWU_RO_"),
    "bls04-bn254": (curves.BN_G2, curves.BN_G1, "BN254G1_XMD:SHA-256_SVDW_RO_"),
}


def check(vector):
    key, _, signature = check_signature(vector, FORMS[vector["suite"]], "POP_")
    assert signature == bytes.fromhex(vector["result"]), "the signature"
    assert vector["proof"] == ""
    return f"key, possession, {key.n} shares, signature, pairing"


def check_signature(vector, form, ending):
    """Key, message and signature, after checks of everything but the vector's result. `ending` is that of the domain of
    messages."""
    keys, signatures, hash_suite = form
    key = Key(keys, vector)
    message = bytes.fromhex(vector["statement"])
    point = hash_to_curve(hash_suite, message, f"BLS_SIG_{hash_suite}{ending}".encode())
    shares = [signatures.decode(bytes.fromhex(share)) for share in vector["shares"]]
    assert shares == [signatures.multiply(secret, point) for secret in key.secrets]
    signature = key.combine(shares, signatures)
    assert verify(keys, key.public_key, point, signature), "the pairing equation"
    possession = hash_to_curve(hash_suite, keys.encode(key.public_key), f"BLS_POP_{hash_suite}POP_".encode())
    assert signatures.encode(signatures.multiply(key.secret, possession)) == key.possession, "proof of possession"
    return key, message, signatures.encode(signature)


def verify(keys, public_key, point, signature):
    """e(public key, point) = e(generator, signature), with the arguments in G1 and G2 in the right places."""
    pairs = (public_key, point), (keys.negate(keys.generator), signature)
    pairing = BN254 if keys is curves.BN_G2 else BLS12_381
    if keys is pairing.g2:
        pairs = [(in_g1, in_g2) for in_g2, in_g1 in pairs]
    return pairing.product_is_one(*pairs)
