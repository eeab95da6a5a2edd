"""Shares with the proof that they have the right exponent: spec/sg02.md, "Shares"."""

from transcript import H, scalar


def check_share(group, context, base, verification_key, share):
    """The point of a share whose proof holds; else an exception. `context` are the parts of the transcript that the
    challenge is bound to, domain first."""
    length = len(group.encode(group.generator))
    if len(share) != 3 * length + group.scalar_length:
        raise ValueError("length of a share")
    image, a, b = (group.decode(share[i : i + length]) for i in range(0, 3 * length, length))
    response = group.decode_scalar(share[3 * length :])
    encode = group.encode
    e = scalar(
        group,
        H(
            *context,
            ("proof", b"theta/dleq/v1"),
            ("g", encode(group.generator)),
            ("h", encode(verification_key)),
            ("u", encode(base)),
            ("v", encode(image)),
            ("a", encode(a)),
            ("b", encode(b)),
        ),
    )
    if group.base(response) != group.add(a, group.multiply(e, verification_key)):
        raise ValueError("the proof of a share fails on the generator")
    if group.multiply(response, base) != group.add(b, group.multiply(e, image)):
        raise ValueError("the proof of a share fails on the base")
    return image
