"""Who makes shares for a request: spec/quorum.md, "The draw"."""

from sealing import chacha20
from transcript import H


def makers(case):
    """The makers in the order of the draw, the combiners first."""
    key, statement = bytes.fromhex(case["key_id"]), bytes.fromhex(case["statement"])
    operation = ("operation", case["operation"].encode())
    seed = H("theta/one-round/makers/v1", ("key id", key), operation, ("statement", statement))[:32]
    n, m = case["n"], min(case["k"] + 1, case["n"])
    # With a counter and a nonce of zero, the stream of RFC 8439 is that of the first design, which counts in 64 bits.
    stream = chacha20(seed, 0, bytes(12), bytes(8 * m))
    parties = list(range(1, n + 1))
    for i in range(m):
        j = i + int.from_bytes(stream[8 * i : 8 * i + 8], "little") % (n - i)
        parties[i], parties[j] = parties[j], parties[i]
    return parties[:m]


def check(file):
    for case in file["cases"]:
        drawn = makers(case)
        if drawn != case["makers"] or drawn[:2] != case["combiners"]:
            raise ValueError(f"the makers for {case['operation']} with {case['k']} of {case['n']}")
    return f"{len(file['cases'])} draws of makers and combiners"
