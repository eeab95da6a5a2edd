"""Beacons of drand (spec/cks05.md, "Coins from signatures") and the BLS signatures of Ethereum's tests."""

import hashlib

import curves
from bls04 import verify
from hash_to_curve import hash_to_curve

G1_HASH, G2_HASH = "BLS12381G1_XMD:SHA-256_SSWU_RO_", "BLS12381G2_XMD:SHA-256_SSWU_RO_"
# Group of keys, group of signatures, hash to the latter.
SCHEMES = {
    "pedersen-bls-chained": (curves.BLS_G1, curves.BLS_G2, G2_HASH),
    "bls-unchained-g1-rfc9380": (curves.BLS_G2, curves.BLS_G1, G1_HASH),
}


def check_drand(vector):
    keys, signatures, hash_suite = SCHEMES[vector["scheme"]]
    public_key = keys.decode(bytes.fromhex(vector["public_key"]))
    for beacon in vector["beacons"]:
        encoded = bytes.fromhex(beacon["signature"])
        previous = bytes.fromhex(beacon.get("previous_signature", ""))
        message = hashlib.sha256(previous + beacon["round"].to_bytes(8, "big")).digest()
        point = hash_to_curve(hash_suite, message, f"BLS_SIG_{hash_suite}NUL_".encode())
        assert verify(keys, public_key, point, signatures.decode(encoded)), beacon["round"]
        if "randomness" in beacon:
            assert hashlib.sha256(encoded).hexdigest() == beacon["randomness"], beacon["round"]
    return f"{len(vector['beacons'])} beacons"


def check_ethereum(vector):
    keys, signatures = curves.BLS_G1, curves.BLS_G2
    points = {}
    for case in vector["sign"]:
        secret, message = int(case["secret_key"], 16), case["message"]
        points[message] = hash_to_curve(G2_HASH, bytes.fromhex(message), vector["suite"].encode())
        assert keys.encode(keys.base(secret)).hex() == case["public_key"]
        assert signatures.encode(signatures.multiply(secret, points[message])).hex() == case["signature"]
    for case in vector["fast_aggregate_verify"]:
        public_key = keys.sum(keys.decode(bytes.fromhex(key)) for key in case["public_keys"])
        signature = signatures.decode(bytes.fromhex(case["signature"]))
        assert verify(keys, public_key, points[case["message"]], signature)
    for group, name in ((keys, "deserialization_G1"), (signatures, "deserialization_G2")):
        for case in vector[name]:
            assert decodes(group, bytes.fromhex(case["input"])) == case["accepted"], case["name"]
    return f"{len(vector['sign'])} signatures, {len(vector['fast_aggregate_verify'])} aggregates, encodings"


def decodes(group, data):
    try:
        return group.encode(group.decode(data)) == data
    except ValueError:
        return False
