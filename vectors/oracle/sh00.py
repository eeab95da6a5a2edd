"""Threshold RSA signatures of Shoup (Eurocrypt 2000), and the coin from them: spec/sh00.md."""

import hashlib
import tomllib
from itertools import combinations
from math import factorial

import rsa
from keys import key_id, lagrange_fraction
from transcript import H

EXPONENT = 65537
PREFIX = b"theta/cks05-sh00/name/v1/"


class RsaKey:
    """A shared RSA key, every relation between its parts checked."""

    def __init__(self, vector):
        public = tomllib.loads(vector["public_key_file"])
        shares = [tomllib.loads(text) for text in vector["share_files"]]
        self.k, self.n = public["k"], public["n"]
        self.modulus = int(public["modulus"], 16)
        self.length = (self.modulus.bit_length() + 7) // 8
        self.base = int(public["verification_base"], 16)
        self.verification_keys = [int(text, 16) for text in public["verification_keys"]]
        self.secrets = [int(share["secret"], 16) for share in shares]
        self.id = key_id(vector["suite"], subject_public_key_info(self.modulus))
        assert public["exponent"] == EXPONENT
        for file in (public, *shares):
            assert (file["format"], file["suite"], file["key_id"]) == (1, vector["suite"], self.id.hex())
        assert self.verification_keys == [self.power(self.base, secret) for secret in self.secrets]

    def power(self, base, exponent):
        return pow(base, exponent, self.modulus)

    def encode(self, number):
        return number.to_bytes(self.length, "big")


def check(vector):
    if "primes" in vector:
        return check_primes(vector["primes"])
    key = RsaKey(vector)
    coin = vector["suite"] == "cks05-sh00"
    message = bytes.fromhex(vector["statement"])
    message = PREFIX + message if coin else message
    encoded = encode_message(vector["suite"], key, message)
    x = int.from_bytes(encoded, "big")
    values = [check_share(key, x, party, bytes.fromhex(share)) for party, share in enumerate(vector["shares"], 1)]
    assert values == [key.power(x, 2 * secret) for secret in key.secrets]
    signatures = {combine(key, x, chosen) for chosen in combinations(enumerate(values, 1), key.k)}
    assert len(signatures) == 1, "combinations differ"
    signature = key.encode(signatures.pop())
    assert rsa.opens_to(key.modulus, signature) == encoded, "the signature"
    if coin:
        assert hashlib.sha256(signature).hexdigest() == vector["result"], "the coin's value"
        assert signature == bytes.fromhex(vector["proof"]), "the coin's proof"
    else:
        assert signature == bytes.fromhex(vector["result"]), "the signature"
        assert vector["proof"] == ""
    return f"key, {key.n} shares with proofs, {'value, proof' if coin else 'signature'}"


def check_primes(stored):
    for bits, pair in stored.items():
        p, q = int(pair["p"], 16), int(pair["q"], 16)
        assert p != q
        for prime in (p, q):
            assert prime.bit_length() == int(bits) // 2 and prime >> (prime.bit_length() - 2) == 3
            assert is_prime(prime) and is_prime(prime // 2), "a safe prime"
    return f"safe primes of {len(stored)} sizes"


def is_prime(number):
    """Miller-Rabin to the first primes as bases, which suffices for numbers that are not adversarial."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53):
        power = pow(base, odd, number)
        if power != 1 and all(pow(power, 2**i, number) != number - 1 for i in range(twos)):
            return False
    return True


def encode_message(suite, key, message):
    if suite == "sh00-pss-sha256":
        digest = hashlib.sha256(message).digest()
        salt = H("theta/sh00/pss-salt/v1", ("key id", key.id), ("digest", digest))[:32]
        return rsa.emsa_pss(message, salt, key.length)
    return rsa.emsa_pkcs1("sha512" if suite.endswith("sha512") else "sha256", message, key.length)


def check_share(key, x, party, share):
    """x_i of a share whose proof holds: log_v v_i = log_(x^4) x_i^2."""
    length = key.length
    assert len(share) == 3 * length + length + 32
    value, on_base, on_message = (share[i : i + length] for i in range(0, 3 * length, length))
    own_key = key.verification_keys[party - 1]
    challenge = H(
        "theta/sh00/proof/v1",
        ("key id", key.id),
        ("index", party.to_bytes(2, "little")),
        ("verification base", key.encode(key.base)),
        ("verification key", key.encode(own_key)),
        ("message", key.encode(x)),
        ("share", value),
        ("commitment to the base", on_base),
        ("commitment to the message", on_message),
    )
    c, z = int.from_bytes(challenge[:16], "big"), int.from_bytes(share[3 * length :], "big")
    value, on_base, on_message = (int.from_bytes(part, "big") for part in (value, on_base, on_message))
    assert key.power(key.base, z) == on_base * key.power(own_key, c) % key.modulus, "the proof, on the base"
    assert key.power(x, 4 * z) == on_message * key.power(value, 2 * c) % key.modulus, "the proof, on the message"
    return value


def combine(key, x, chosen):
    """Section 2.2 of the paper, with its Delta = n!: w^e = x^(4 Delta^2), and a 4 Delta^2 + b e = 1 gives y = w^a x^b."""
    delta = factorial(key.n)
    parties = [party for party, _ in chosen]
    w = 1
    for party, value in chosen:
        numerator, denominator = lagrange_fraction(parties, party)
        w = w * key.power(value, 2 * (delta * numerator // denominator)) % key.modulus
    power = 4 * delta * delta
    a = pow(power, -1, EXPONENT)
    b = (1 - a * power) // EXPONENT
    return key.power(w, a) * key.power(x, b) % key.modulus


def subject_public_key_info(modulus):
    """The DER of RFC 5280 and RFC 8017, appendix A.1.1."""

    def element(tag, content):
        length = len(content)
        size = bytes([length]) if length < 128 else b"\x82" + length.to_bytes(2, "big")
        return bytes([tag]) + size + content

    def integer(number):
        return element(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))

    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")
    return element(0x30, algorithm + element(3, b"\0" + element(0x30, integer(modulus) + integer(EXPONENT))))
