"""The statements and terms that clients sign: spec/custody.md, "Changes and requests", and spec/policy.md, "Encodings"."""

import hashlib

from curves import ED25519 as GROUP

OPERATIONS = (
    "decrypt decapsulate sign flip-coin keys.list keys.create keys.refresh keys.reshare keys.recover keys.rotate "
    "keys.enable keys.disable keys.destroy keys.export keys.import keys.backup status audit.read policy.read "
    "audit.prune sign-digest group.change group.renew"
).split()


def word(text):
    """The text after its length in one byte."""
    return bytes([len(text)]) + text.encode()


def field(data):
    """The bytes after their length in four bytes."""
    return len(data).to_bytes(4, "big") + data


def option(value, write):
    return b"\0" if value is None else b"\1" + write(value)


def text(value):
    return field(value.encode())


def number(length):
    return lambda value: value.to_bytes(length, "big")


def nodes(numbers):
    return number(2)(len(numbers)) + b"".join(map(number(2), numbers))


def change(value):
    """A change of a key: format 1, tag, key, then the fields."""
    tag = ["create", "rotate", "refresh", "reshare", "recover"].index(value["aim"]) + 1
    encoded = bytes([1, tag]) + word(value["key"])
    if value["aim"] == "create":
        deliveries = ["all", "quorum", "dishonest-majority", "passive", "passive-dishonest-majority"]
        delivery = bytes([deliveries.index(value["delivery"]) + 1])
        return encoded + word(value["suite"]) + delivery + number(2)(value["k"]) + nodes(value["holders"])
    if value["aim"] == "rotate":
        return encoded
    encoded += number(4)(value["version"])
    if value["aim"] == "reshare":
        return encoded + number(2)(value["k"]) + nodes(value["holders"])
    return encoded + (number(2)(value["node"]) if value["aim"] == "recover" else b"")


def ceremony(value):
    return bytes([1, 18]) + bytes.fromhex(value["nonce"]) + change(value["change"])


def cancel(value):
    return bytes([1, 20]) + bytes.fromhex(value["nonce"]) + change(value["change"])


def state(value):
    encoded = bytes([1, 17]) + word(value["key"]) + number(4)(value["version"])
    return encoded + word(value["state"]) + number(8)(value["generation"]) + number(8)(value["not_before"])


def members(value):
    """A request for a change of the members: what the change is the ledger says."""
    encoded = bytes([1, 19]) + bytes.fromhex(value["nonce"])
    return encoded + field(bytes.fromhex(value["change"])) + field(bytes.fromhex(value["proof"]))


def digest(hexadecimal):
    return hashlib.sha256(bytes.fromhex(hexadecimal)).digest()


def code(operation):
    return bytes([OPERATIONS.index(operation) + 1])


def validity(value):
    return number(8)(value["from"]) + number(8)(value["until"])


def request(value, public):
    """The terms of a signed request."""
    encoded = text("theta/request/v1") + text(value["group"]) + option(value["key"], text) + code(value["operation"])
    encoded += field(bytes.fromhex(value["label"])) + digest(value["statement"]) + digest(value["parameters"])
    encoded += option(value["slot"], number(8)) + validity(value)
    return encoded + bytes.fromhex(value["nonce"]) + public


def approval(value, public):
    """The terms of an approval."""
    encoded = text("theta/approval/v1") + text(value["group"]) + option(value["key"], text) + code(value["operation"])
    return encoded + digest(value["statement"]) + validity(value) + public


def token_proof(value, public):
    """What the proof of a token signs: spec/policy.md, "Tokens"."""
    return text("theta/token-proof/v1") + bytes.fromhex(value["node"]) + validity(value) + public


def proof(value, public, signature):
    """The bytes of the proof, whose text is a header."""
    return public + validity(value) + signature


def sign(seed, message):
    """Ed25519, RFC 8032, section 5.1.6: public key and signature."""
    expanded = hashlib.sha512(seed).digest()
    secret = int.from_bytes(expanded[:32], "little") & ~7 & (1 << 254) - 1 | 1 << 254
    public = GROUP.encode(GROUP.multiply_integer(secret, GROUP.base(1)))
    nonce = int.from_bytes(hashlib.sha512(expanded[32:] + message(public)).digest(), "little")
    commitment = GROUP.encode(GROUP.multiply_integer(nonce % GROUP.order, GROUP.base(1)))
    challenge = int.from_bytes(hashlib.sha512(commitment + public + message(public)).digest(), "little")
    response = (nonce + challenge * secret) % GROUP.order
    return public, commitment + response.to_bytes(32, "little")


def encoded(case):
    """The bytes that a case stands for, by its kind."""
    kinds = {"change": change, "ceremony": ceremony, "cancel": cancel, "state": state, "members": members}
    if case["kind"] in kinds:
        return {"encoded": kinds[case["kind"]](case["value"])}
    terms = {"request": request, "approval": approval, "token-proof": token_proof}[case["kind"]]
    public, signature = sign(bytes.fromhex(case["seed"]), lambda public: terms(case["value"], public))
    message = terms(case["value"], public)
    if case["kind"] == "token-proof":
        return {"public_key": public, "encoded": proof(case["value"], public, signature)}
    found = {"public_key": public, "encoded": message + signature}
    if case["kind"] == "request":
        found["id"] = hashlib.sha256(b"theta/request-id/v1\0" + message).digest()
    return found


def check(file):
    for case in file["cases"]:
        for name, data in encoded(case).items():
            if case[name] != data.hex():
                raise ValueError(f"{case['name']}: {name}")
    return f"{len(file['cases'])} statements"
