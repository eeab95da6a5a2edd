"""Argon2id (RFC 9106), which Python's library does not have."""

import struct
from hashlib import blake2b

WORD = 2**64 - 1
WORDS = 128
# The words of a block in the order in which its rows, then its columns, are permuted.
ROWS = [[16 * row + i for i in range(16)] for row in range(8)]
COLUMNS = [[16 * i + 2 * column + j for i in range(8) for j in range(2)] for column in range(8)]


def variable_hash(data, length):
    """H' of section 3.3."""
    data = length.to_bytes(4, "little") + data
    if length <= 64:
        return blake2b(data, digest_size=length).digest()
    value = blake2b(data).digest()
    output = value[:32]
    while length - len(output) > 64:
        value = blake2b(value).digest()
        output += value[:32]
    return output + blake2b(value, digest_size=length - len(output)).digest()


def mix(words, places):
    """P of section 3.6 on sixteen words."""
    v = [words[place] for place in places]
    columns = [(j, 4 + j, 8 + j, 12 + j) for j in range(4)]
    diagonals = [(j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4) for j in range(4)]
    for a, b, c, d in columns + diagonals:
        for x, y, z, by in ((a, b, d, 32), (c, d, b, 24), (a, b, d, 16), (c, d, b, 63)):
            v[x] = v[x] + v[y] + 2 * (v[x] & 0xFFFFFFFF) * (v[y] & 0xFFFFFFFF) & WORD
            turned = v[z] ^ v[x]
            v[z] = (turned >> by | turned << 64 - by) & WORD
    for place, word in zip(places, v):
        words[place] = word


def compress(x, y):
    """G of section 3.5."""
    r = [a ^ b for a, b in zip(x, y)]
    z = r[:]
    for places in ROWS + COLUMNS:
        mix(z, places)
    return [a ^ b for a, b in zip(r, z)]


def addresses(turn, lane, part, blocks, passes, count):
    """The pseudo-random words of a segment of which they do not depend on the password (section 3.4.1.2)."""
    zero, words = [0] * WORDS, []
    for counter in range(1, -(-count // WORDS) + 1):
        head = [turn, lane, part, blocks, passes, 2, counter]
        words += compress(zero, compress(zero, head + [0] * (WORDS - len(head))))
    return words


def reference(word, place, lanes, length):
    """The lane and column of the block that is mixed in (section 3.4.2), by pass, lane, part and number in the part."""
    turn, lane, part, number = place
    segment = length // 4
    first, second = word & 0xFFFFFFFF, word >> 32
    of = lane if (turn, part) == (0, 0) else second % lanes
    known = part * segment if turn == 0 else length - segment
    window = known + number - 1 if of == lane else known - (number == 0)
    back = window * (first * first >> 32) >> 32
    start = 0 if turn == 0 else (part + 1) * segment
    return of, (start + window - 1 - back) % length


def argon2id(password, salt, memory, passes, lanes, length):
    """The tag, without a secret value or associated data. Memory is in KiB."""
    numbers = struct.pack("<6I", lanes, length, memory, passes, 0x13, 2)
    fields = b"".join(len(field).to_bytes(4, "little") + field for field in (password, salt, b"", b""))
    seed = blake2b(numbers + fields).digest()
    blocks = memory // (4 * lanes) * 4 * lanes
    columns = blocks // lanes
    unpack = lambda data: list(struct.unpack("<128Q", data))
    first = lambda lane, i: unpack(variable_hash(seed + struct.pack("<2I", i, lane), 1024))
    table = [[first(lane, 0), first(lane, 1)] + [None] * (columns - 2) for lane in range(lanes)]
    segment = columns // 4
    for turn in range(passes):
        for part in range(4):
            for lane in range(lanes):
                given = addresses(turn, lane, part, blocks, passes, segment) if turn == 0 and part < 2 else None
                for number in range(2 if (turn, part) == (0, 0) else 0, segment):
                    column = part * segment + number
                    before = table[lane][column - 1]
                    word = given[number] if given else before[0]
                    of, at = reference(word, (turn, lane, part, number), lanes, columns)
                    block = compress(before, table[of][at])
                    if turn > 0:
                        block = [a ^ b for a, b in zip(block, table[lane][column])]
                    table[lane][column] = block
    last = [0] * WORDS
    for lane in table:
        last = [a ^ b for a, b in zip(last, lane[-1])]
    return variable_hash(struct.pack("<128Q", *last), length)
