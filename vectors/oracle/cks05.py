"""The Diffie-Hellman coin: spec/cks05.md."""

from dleq import check_share
from hash_to_curve import hash_to_curve, hash_to_ristretto255
from keys import Key
from suites import curve_of, tag
from transcript import H


def check(vector):
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
