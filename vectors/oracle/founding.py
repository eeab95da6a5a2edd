"""Cards of nodes, foundings of groups and their fingerprints: spec/ledger.md, "Founding"."""

import base64
import hashlib

from curves import RISTRETTO255 as GROUP
from slots import signs, word
from transcript import H, scalar

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def field(data):
    return len(data).to_bytes(4, "big") + data


def content(card):
    """What a card says, without its signature."""
    return (
        field(b"theta/card/v1")
        + word(card["name"])
        + bytes.fromhex(card["ceremony_key"])
        + bytes.fromhex(card["tls_key"])
        + bytes.fromhex(card["operator_key"])
        + field(card["peer_address"].encode())
        + field(card["api_address"].encode())
        + card["made"].to_bytes(8, "big")
        + card["until"].to_bytes(8, "big")
    )


def identity(master):
    """The secret of a node's key of ceremonies: spec/ceremonies.md."""
    return scalar(GROUP, H("theta/ceremony/identity/v1", ("purpose", b"sign"), ("master", master)))


def operator(master):
    """The secret of an operator's key."""
    return scalar(GROUP, H("theta/operator/v1", ("master", master)))


def sign(secret, key, signed):
    """The Schnorr signature R || s whose nonce follows from key and message."""
    encoded = secret.to_bytes(32, "little")
    nonce = scalar(GROUP, H(*signed, ("key", key), ("nonce", encoded)))
    commitment = GROUP.encode(GROUP.base(nonce))
    e = scalar(GROUP, H(*signed, ("key", key), ("r", commitment)))
    return commitment + ((nonce + e * secret) % GROUP.order).to_bytes(32, "little")


def encode(name, threshold, cards):
    """Cards in any order: those of a founding are in the order of their names in small letters."""
    ordered = sorted(cards, key=lambda card: card["name"].lower())
    members = b"".join(field(content(card) + bytes.fromhex(card["signature"])) for card in ordered)
    head = field(b"theta/founding/v1") + word(name)
    return head + threshold.to_bytes(2, "big") + len(cards).to_bytes(2, "big") + members


def aloud(digest):
    """256 bits as 52 digits of five bits each, the last four of which are 0; in groups of four."""
    number = int.from_bytes(digest, "big") << 4
    digits = "".join(DIGITS[(number >> (5 * at)) & 31] for at in reversed(range(52)))
    return "-".join(digits[at : at + 4] for at in range(0, 52, 4))


def armoured(label, data):
    """Text that survives mail."""
    digits = base64.b64encode(data).decode()
    lines = [digits[at : at + 64] for at in range(0, len(digits), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


def check(file):
    """Keys and signatures of all cards, the founding, its fingerprint and its text."""
    for card in file["cards"]:
        secret = identity(bytes.fromhex(card["master"]))
        key = GROUP.encode(GROUP.base(secret))
        if key.hex() != card["ceremony_key"]:
            raise ValueError("a key of ceremonies")
        if GROUP.encode(GROUP.base(operator(bytes.fromhex(card["operator_master"])))).hex() != card["operator_key"]:
            raise ValueError("an operator's key")
        signed = ("theta/card/v1", ("card", content(card)))
        signature = sign(secret, key, signed)
        if signature.hex() != card["signature"] or not signs(key, signed, signature):
            raise ValueError("the signature of a card")
    founding = encode(file["name"], file["threshold"], file["cards"])
    if founding.hex() != file["founding"] or armoured("THETA FOUNDING", founding) != file["text"]:
        raise ValueError("the encoding of a founding")
    digest = H("theta/founding/fingerprint/v1", ("founding", founding))[:32]
    if aloud(digest) != file["fingerprint"]:
        raise ValueError("the fingerprint of a founding")
    return f"{len(file['cards'])} cards, one founding"


def example():
    """The known answer: run this file to print it."""
    cards = []
    for name, host in [
        ("harbour Bank, Oslo", "theta.harbour.example"),
        ("Alpha Trust", "192.0.2.7"),
        ("alpha Exchange (backup)", "[2001:db8::7]"),
    ]:
        master = hashlib.sha256(b"master of " + name.encode()).digest()
        secret = identity(master)
        key = GROUP.encode(GROUP.base(secret))
        operator_master = hashlib.sha256(b"master of the operator of " + name.encode()).digest()
        card = {
            "name": name,
            "master": master.hex(),
            "ceremony_key": key.hex(),
            "tls_key": hashlib.sha256(b"TLS key of " + name.encode()).hexdigest(),
            "operator_master": operator_master.hex(),
            "operator_key": GROUP.encode(GROUP.base(operator(operator_master))).hex(),
            "peer_address": f"{host}:7100",
            "api_address": f"{host}:7101",
            "made": 1_795_388_400,
            "until": 1_803_164_400,
        }
        card["signature"] = sign(secret, key, ("theta/card/v1", ("card", content(card)))).hex()
        cards.append(card)
    founding = encode("payments", 2, cards)
    digest = H("theta/founding/fingerprint/v1", ("founding", founding))[:32]
    return {
        "name": "payments",
        "threshold": 2,
        "cards": cards,
        "founding": founding.hex(),
        "text": armoured("THETA FOUNDING", founding),
        "fingerprint": aloud(digest),
    }


if __name__ == "__main__":
    import json

    print(json.dumps(example(), indent=2))
