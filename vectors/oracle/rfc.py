"""The vectors of RFC 9380 and RFC 9496, which check the oracle itself."""

import curves
from hash_to_curve import SUITES, expand_message_xmd, expand_message_xof, hash_to_curve, ristretto_map


def check_9496(vector):
    group = curves.RISTRETTO255
    for i, encoding in enumerate(vector["multiples_of_the_generator"]):
        assert group.encode(group.base(i)).hex() == encoding
        assert group.encode(group.decode(bytes.fromhex(encoding))).hex() == encoding
    for encoding in (text for case in vector["bad_encodings"] for text in case["encodings"]):
        try:
            group.decode(bytes.fromhex(encoding))
        except ValueError:
            continue
        raise AssertionError(f"{encoding} was decoded")
    for case in vector["one_way_map"]:
        uniform = bytes.fromhex(case["uniform_bytes"])
        element = group.add(ristretto_map(uniform[:32]), ristretto_map(uniform[32:]))
        assert group.encode(element).hex() == case["element"]
    return "encodings, refusals, the map"


def check_9380(vector):
    dst = vector["dst"].encode()
    if "hash" in vector:
        return check_expansion(vector, dst)
    suite = vector["dst"].split("-with-")[1]
    group = SUITES[suite][0]
    for case in vector["vectors"]:
        x, y = hash_to_curve(suite, case["msg"].encode(), dst)
        assert (coordinate(group, case["x"]), coordinate(group, case["y"])) == (x, y), case["msg"]
    return f"{len(vector['vectors'])} points"


def check_expansion(vector, dst):
    for case in vector["vectors"]:
        expected = bytes.fromhex(case["uniform_bytes"])
        message = case["msg"].encode()
        if vector["hash"].startswith("SHAKE"):
            bits = int(vector["hash"].removeprefix("SHAKE"))
            # Security as in the RFC's suite names: 128 for SHAKE128, 256 for SHAKE256.
            found = expand_message_xof(f"shake_{bits}", bits, message, dst, len(expected))
        else:
            found = expand_message_xmd(vector["hash"].replace("-", "").lower(), message, dst, len(expected))
        assert found == expected, case["msg"]
    return f"{len(vector['vectors'])} expansions"


def coordinate(group, written):
    parts = [written] if isinstance(written, str) else written
    return group.field(*(int(part, 16) for part in parts))
