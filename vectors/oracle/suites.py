"""Which group a suite is on, and the domains of its hashes to the group: spec/groups.md."""

import curves

# The end of a suite's name: number, group, RFC 9380's name of the hash to it.
GROUPS = {
    "ristretto255": (1, curves.RISTRETTO255, "ristretto255_XMD:SHA-512_R255MAP_RO_"),
    "bls12381": (2, curves.BLS_G1, "BLS12381G1_XMD:SHA-256_SSWU_RO_"),
}


def entry(suite):
    return GROUPS[suite.split("-", 1)[1]]


def curve_of(suite):
    """The group, and the name of the hash to it."""
    return entry(suite)[1:]


def tag(suite, purpose):
    """The domain separation tag of a hash to the suite's group."""
    number, _, hash_suite = entry(suite)
    return f"THETA-V01-CS{number:02}-{purpose}-with-{hash_suite}".encode()
