"""Promises for slots: spec/policy.md, "Slots"."""

import hashlib

from curves import RISTRETTO255 as GROUP
from transcript import H, scalar


def slot_digest(operation, message):
    """The digest that a promise is for, of the operation's code and the message."""
    return hashlib.sha256(b"theta/slot/v1\0" + bytes([operation]) + hashlib.sha256(message).digest()).digest()


def parts(vector, digest):
    """The parts of the transcript that is signed, domain first."""
    return (
        "theta/slot/promise/v1",
        ("group", vector["group"].encode()),
        ("node", vector["node"].to_bytes(2, "big")),
        ("key", vector["key"].encode()),
        ("rule", vector["rule"].encode()),
        ("slot", vector["slot"].to_bytes(8, "big")),
        ("digest", digest),
    )


def signs(key, signed, signature):
    """Whether the Schnorr signature R || s over ristretto255 is true under the key."""
    commitment, response = signature[:32], GROUP.decode_scalar(signature[32:])
    e = scalar(GROUP, H(*signed, ("key", key), ("r", commitment)))
    expected = GROUP.add(GROUP.decode(commitment), GROUP.multiply(e, GROUP.decode(key)))
    return GROUP.base(response) == expected


def word(text):
    return bytes([len(text)]) + text.encode()


def check(file):
    """Digests, signatures, and the encoding of the proof that one node promised twice."""
    key = bytes.fromhex(file["verifying_key"])
    promises = []
    for promise in file["promises"]:
        digest = slot_digest(promise["operation"], bytes.fromhex(promise["message"]))
        signature = bytes.fromhex(promise["signature"])
        if digest.hex() != promise["digest"]:
            raise ValueError("the digest of a message for a slot")
        if not signs(key, parts(file, digest), signature):
            raise ValueError("the signature of a promise")
        promises.append(file["node"].to_bytes(2, "big") + digest + signature)
    slot = file["slot"].to_bytes(8, "big")
    encoded = bytes([1]) + word(file["key"]) + word(file["rule"]) + slot + b"".join(promises)
    if encoded.hex() != file["equivocation"]:
        raise ValueError("the encoding of an equivocation")
    return f"{len(promises)} promises, which prove a lie"
