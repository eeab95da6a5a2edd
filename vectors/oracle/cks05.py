"""The coins: spec/cks05.md."""

import hashlib

import bls04
import sh00
from dleq import check_share
from hash_to_curve import hash_to_curve, hash_to_ristretto255
from keys import Key
from suites import curve_of, tag
from transcript import H


# Suites whose coin is the hash of a BLS signature, and whose signatures they are.
FROM_BLS = {"cks05-bls04-min-pk": "bls04-bls12381-min-pk", "cks05-bls04-min-sig": "bls04-bls12381-min-sig"}


def check(vector):
    if vector["suite"] in FROM_BLS:
        return check_from_bls(vector)
    if vector["suite"] == "cks05-sh00":
        return sh00.check(vector)
    return check_diffie_hellman(vector)


def check_from_bls(vector):
    key, _, signature = bls04.check_signature(vector, bls04.FORMS[FROM_BLS[vector["suite"]]], "NUL_")
    assert hashlib.sha256(signature).hexdigest() == vector["result"], "the coin's value"
    assert signature == bytes.fromhex(vector["proof"]), "the coin's proof"
    return f"key, possession, {key.n} shares, value, proof"


def check_diffie_hellman(vector):
    group, hash_suite = curve_of(vector["suite"])
    key = Key(group, vector)
    name = bytes.fromhex(vector["statement"])
    base = hash_to_group(hash_suite, key.id + name, tag(vector["suite"], "cks05-name"))
    context = ("theta/cks05/share/v1", *key.parts(), ("name", name))
    shares = [bytes.fromhex(share) for share in vector["shares"]]
    images = [check_share(group, context, base, h, share) for h, share in zip(key.verification_keys, shares)]
    assert images == [group.multiply(secret, base) for secret in key.secrets]
    power = key.combine(images)
    assert power == group.multiply(key.secret, base)
    value = H("theta/cks05/value/v1", *key.parts(), ("base", group.encode(base)), ("power", group.encode(power)))[:32]
    assert value == bytes.fromhex(vector["result"]), "the coin's value"
    proof = b"".join(party.to_bytes(2, "big") + shares[party - 1] for party in range(1, key.k + 1))
    assert proof == bytes.fromhex(vector["proof"]), "the coin's proof"
    return f"key, {key.n} shares, value, proof"


def hash_to_group(hash_suite, message, domain):
    if hash_suite.startswith("ristretto255"):
        return hash_to_ristretto255(message, domain)
    return hash_to_curve(hash_suite, message, domain)
