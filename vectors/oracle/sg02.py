"""The threshold cipher TDH2 as a key encapsulation: spec/sg02.md."""

import sealing
from cks05 import hash_to_group
from dleq import check_share
from keys import Key
from suites import NUMBERS, curve_of, tag
from transcript import H, scalar


def check(vector):
    suite = vector["suite"]
    group, hash_suite = curve_of(suite)
    key = Key(group, vector)
    head = bytes.fromhex(vector["statement"])
    code, _, key_id, _, _, _, capsule = sealing.header(head)
    assert (code, key_id) == (NUMBERS[suite], key.id)

    u, context = check_capsule(key, hash_suite, head, capsule)
    shares = [bytes.fromhex(share) for share in vector["shares"]]
    images = [check_share(group, context, u, h, share) for h, share in zip(key.verification_keys, shares)]
    assert images == [group.multiply(secret, u) for secret in key.secrets]
    shared = key.combine(images)
    assert shared == group.multiply(key.secret, u)
    mask = H("theta/sg02/wrap/v1", *key.parts(), ("u", group.encode(u)), ("shared", group.encode(shared)))[:32]
    payload_key = check_payload(key, vector, capsule, mask)
    envelope = head[: -len(capsule)]
    r, s = (coin(key, envelope, payload_key, purpose) for purpose in ("encryption", "proof"))
    assert u == group.base(r) and shared == group.multiply(r, key.public_key), "r follows from the payload key"
    statement = H("theta/sg02/validity/v1", ("suite", suite.encode()), ("header", head[: -group.scalar_length]))
    response = (s + r * scalar(group, statement)) % group.order
    assert head[-group.scalar_length :] == group.encode_scalar(response), "s follows from the payload key"
    return f"key, header, {key.n} shares, payload key, plaintext"


def check_capsule(key, hash_suite, head, capsule):
    """u and the context of shares; an exception unless the capsule's proof holds."""
    group = key.group
    length = len(group.encode(group.generator))
    assert len(capsule) == 64 + 4 * length + group.scalar_length
    offsets = range(64, 64 + 4 * length, length)
    u, u_second, w, w_second = (group.decode(capsule[i : i + length]) for i in offsets)
    response = capsule[64 + 4 * length :]
    f = group.decode_scalar(response)
    second = hash_to_group(hash_suite, b"second generator", tag(key.suite, "sg02-second-generator"))
    statement = H("theta/sg02/validity/v1", ("suite", key.suite.encode()), ("header", head[: -len(response)]))
    e = scalar(group, statement)
    assert group.base(f) == group.add(group.multiply(e, u), w), "the header's proof, first equation"
    assert group.multiply(f, second) == group.add(group.multiply(e, u_second), w_second), "second equation"
    context = ("theta/sg02/share/v1", *key.parts(), ("statement", statement), ("response", response))
    return u, context


def coin(key, envelope, payload_key, purpose):
    """The randomness of an encryption for one purpose."""
    parts = (("envelope", envelope), ("payload key", payload_key), ("purpose", purpose.encode()))
    return scalar(key.group, H("theta/cipher/coins/v1", *key.parts(), *parts))


def check_payload(key, vector, capsule, mask):
    """Unwraps the payload key, compares it with the commitment and opens the ciphertext. Returns the key."""
    head, ciphertext = bytes.fromhex(vector["statement"]), bytes.fromhex(vector["ciphertext"])
    assert ciphertext.startswith(head)
    payload_key = bytes(a ^ b for a, b in zip(capsule[:32], mask))
    assert payload_key == bytes.fromhex(vector["result"]), "the payload key"
    expected = H("theta/payload-key-commitment/v1", *key.parts(), ("payload key", payload_key))[:32]
    assert capsule[32:64] == expected, "the commitment to the payload key"
    plaintext = sealing.open_payload(payload_key, head, ciphertext[len(head) :])
    assert plaintext == vector["plaintext"].encode(), "the plaintext"
    assert vector["proof"] == ""
    return payload_key
