"""Key files, the binary form of public parts and shares, and secret sharing: spec/keys.md."""

import json
import tomllib
from itertools import combinations
from pathlib import Path

from transcript import H


class Key:
    """A key with all of its shares, every relation between them checked."""

    def __init__(self, group, vector):
        public = tomllib.loads(vector["public_key_file"])
        shares = [tomllib.loads(text) for text in vector["share_files"]]
        self.group, self.suite = group, vector["suite"]
        self.k, self.n = public["k"], public["n"]
        self.public_key = group.decode(bytes.fromhex(public["public_key"]))
        self.verification_keys = [group.decode(bytes.fromhex(text)) for text in public["verification_keys"]]
        self.possession = bytes.fromhex(public.get("proof_of_possession", ""))
        self.secrets = [group.decode_scalar(bytes.fromhex(share["secret"])) for share in shares]
        self.id = key_id(self.suite, group.encode(self.public_key))

        for file in (public, *shares):
            assert (file["format"], file["suite"], file["key_id"]) == (1, self.suite, self.id.hex())
        assert [share["index"] for share in shares] == list(range(1, self.n + 1))
        assert len(self.verification_keys) == self.n
        assert self.verification_keys == [group.base(secret) for secret in self.secrets]
        secrets = {interpolate(group.order, dict(chosen)) for chosen in self.subsets(self.secrets)}
        assert len(secrets) == 1, "the shares are not on one polynomial"
        self.secret = secrets.pop()
        assert group.base(self.secret) == self.public_key

    def subsets(self, values):
        """All sets of k parties with their values."""
        return combinations(enumerate(values, 1), self.k)

    def combine(self, points, group=None):
        """The value at zero "in the exponent", which must be the same from any k shares."""
        group = group or self.group
        results = []
        for chosen in self.subsets(points):
            parties = [party for party, _ in chosen]
            results.append(
                group.sum(group.multiply(lagrange(group.order, parties, party), point) for party, point in chosen)
            )
        assert all(result == results[0] for result in results), "combinations differ"
        return results[0]

    def parts(self):
        """The first parts of every transcript."""
        return ("suite", self.suite.encode()), ("key id", self.id)


def public_part(public):
    """The binary form of what a public file says."""
    suite = public["suite"].encode()
    numbers = (public["k"], public["n"])
    if "modulus" in public:
        elements = [public["modulus"], public["verification_base"], *public["verification_keys"]]
    else:
        elements = [public["public_key"], *public["verification_keys"]]
    elements = [bytes.fromhex(element) for element in elements]
    (length,) = {len(element) for element in elements}
    part = bytes([1, len(suite)]) + suite
    part += b"".join(number.to_bytes(2, "big") for number in (*numbers, length)) + b"".join(elements)
    if "modulus" in public:
        return part
    if "proof_of_possession" not in public:
        return part + b"\0"
    proof = bytes.fromhex(public["proof_of_possession"])
    return part + b"\1" + len(proof).to_bytes(4, "big") + proof


def share_part(share):
    """The binary form of what a share's file says."""
    secret = bytes.fromhex(share["secret"])
    return bytes([1]) + bytes.fromhex(share["key_id"]) + share["index"].to_bytes(2, "big") + secret


def known_parts():
    """The known answers: the public parts and shares of all keys in `vectors/`. Run this file to print them."""
    vectors = Path(__file__).resolve().parent.parent
    parts, shares = {}, {}
    for path in sorted(vectors.glob("*/*.json")):
        if path.parent.name == "keys":
            continue
        vector = json.loads(path.read_text())
        if isinstance(vector, dict) and "public_key_file" in vector:
            name = path.relative_to(vectors).as_posix()
            parts[name] = public_part(tomllib.loads(vector["public_key_file"])).hex()
            shares[name] = [share_part(tomllib.loads(text)).hex() for text in vector["share_files"]]
    return {"keys": parts, "shares": shares}


def check(file):
    """The public part of every key that has a file, and its shares."""
    expected = known_parts()
    if file != expected:
        raise ValueError("a public part or a share")
    return f"{len(expected['keys'])} public parts with {sum(map(len, expected['shares'].values()))} shares"


def key_id(suite, public_key):
    return H("theta/key-id/v1", ("suite", suite.encode()), ("public key", public_key))[:32]


def lagrange(order, parties, party):
    """The coefficient at zero of `party` among `parties`."""
    numerator, denominator = lagrange_fraction(parties, party)
    return numerator * pow(denominator, -1, order) % order


def lagrange_fraction(parties, party):
    numerator = denominator = 1
    for other in parties:
        if other != party:
            numerator, denominator = numerator * other, denominator * (other - party)
    return numerator, denominator


def interpolate(order, values):
    """The polynomial's value at zero."""
    return sum(lagrange(order, list(values), party) * value for party, value in values.items()) % order


if __name__ == "__main__":
    print(json.dumps(known_parts(), indent=2))
