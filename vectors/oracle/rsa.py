"""Standard verification of RSA signatures: RFC 8017."""

import hashlib

# The DER prefixes of section 9.2, note 1.
DIGEST_INFO = {
    "sha256": bytes.fromhex("3031300d060960864801650304020105000420"),
    "sha512": bytes.fromhex("3051300d060960864801650304020305000440"),
}


def emsa_pkcs1(algorithm, message, length):
    """EMSA-PKCS1-v1_5, section 9.2."""
    info = DIGEST_INFO[algorithm] + hashlib.new(algorithm, message).digest()
    return b"\0\1" + b"\xff" * (length - 3 - len(info)) + b"\0" + info


def mgf1(seed, length):
    """Appendix B.2.1, with SHA-256."""
    blocks = (hashlib.sha256(seed + i.to_bytes(4, "big")).digest() for i in range(-(-length // 32)))
    return b"".join(blocks)[:length]


def emsa_pss(message, salt, length):
    """EMSA-PSS, section 9.1.1, with SHA-256 and MGF1 with SHA-256, for a modulus of 8 * length bits."""
    digest = hashlib.sha256(bytes(8) + hashlib.sha256(message).digest() + salt).digest()
    block = bytes(length - 32 - len(salt) - 2) + b"\1" + salt
    masked = bytearray(a ^ b for a, b in zip(block, mgf1(digest, len(block))))
    masked[0] &= 0x7F
    return bytes(masked) + digest + b"\xbc"


def opens_to(modulus, signature):
    """The encoded message under a signature; the public exponent is 65,537."""
    length = (modulus.bit_length() + 7) // 8
    assert len(signature) == length
    number = int.from_bytes(signature, "big")
    assert number < modulus
    return pow(number, 65537, modulus).to_bytes(length, "big")
