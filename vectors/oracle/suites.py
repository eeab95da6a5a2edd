"""The suites' groups and the domains of their hashes to the group: spec/sg02.md, spec/cks05.md."""

import curves

# RFC 9380's name of the hash to a group.
HASHES = {
    "ristretto255": (curves.RISTRETTO255, "ristretto255_XMD:SHA-512_R255MAP_RO_"),
    "ed25519": (curves.ED25519, "edwards25519_XMD:SHA-512_ELL2_RO_"),
    "ed448": (curves.ED448, "edwards448_XOF:SHAKE256_ELL2_RO_"),
    "p256": (curves.P256, "P256_XMD:SHA-256_SSWU_RO_"),
    "secp256k1": (curves.SECP256K1, "secp256k1_XMD:SHA-256_SSWU_RO_"),
    "bls12381": (curves.BLS_G1, "BLS12381G1_XMD:SHA-256_SSWU_RO_"),
    "bn254": (curves.BN_G1, "BN254G1_XMD:SHA-256_SVDW_RO_"),
}
# The codes of the suites in headers and in the domains of hashes.
NUMBERS = {
    "sg02-ristretto255": 1,
    "sg02-bls12381": 2,
    "sg02-ed25519": 5,
    "sg02-bn254": 6,
    "sg02-p256": 7,
    "sg02-secp256k1": 8,
    "cks05-ristretto255": 1,
    "cks05-bls12381": 2,
    "cks05-ed25519": 5,
    "cks05-bn254": 6,
    "cks05-p256": 7,
    "cks05-secp256k1": 8,
    "cks05-ed448": 9,
}


def curve_of(suite):
    """The group, and the name of the hash to it."""
    return HASHES[suite.split("-", 1)[1]]


def tag(suite, purpose):
    """The domain separation tag of a hash to the suite's group."""
    return f"THETA-V01-CS{NUMBERS[suite]:02}-{purpose}-with-{curve_of(suite)[1]}".encode()
