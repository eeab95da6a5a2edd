"""Transcripts: `H(domain; label = data, ...)` of spec/groups.md."""

import hashlib


def H(domain, *parts):
    """64 bytes. Parts are pairs of label and data."""
    state = hashlib.sha512()
    for label, data in (("domain", domain.encode()), *parts):
        for item in (label.encode(), data):
            state.update(len(item).to_bytes(8, "little") + item)
    return state.digest()


def scalar(group, digest):
    """A scalar from the 64 bytes of a hash."""
    if group.order.bit_length() > 384:
        digest += H("theta/challenge/second-block/v1", ("first", digest))
    return int.from_bytes(digest, group.byte_order) % group.order
