"""Sealed payloads: spec/payload.md; ChaCha20-Poly1305 (RFC 8439) and BLAKE3, which Python's library does not have."""

import struct

from transcript import H

CHUNK, TAG = 65536, 16


def header(data):
    """The parts of a header, strictly parsed."""
    magic, version, length, suite, aead, key_id, plaintext_length, digest, label_length = struct.unpack(
        ">5sBIBB32sQ32sI", data[:88]
    )
    assert (magic, version, length) == (b"theta", 2, len(data))
    assert label_length <= 65536 and 88 + label_length <= length
    label, capsule = data[88 : 88 + label_length], data[88 + label_length :]
    return suite, aead, key_id, plaintext_length, digest, label, capsule


def open_payload(payload_key, head, sealed):
    """The plaintext; an assertion fails if anything is wrong."""
    _, aead, _, length, digest, label, _ = header(head)
    assert aead == 1, "this oracle knows ChaCha20-Poly1305 alone"
    name = ("aead", b"chacha20-poly1305")
    derived = H("theta/payload/key/v1", name, ("payload key", payload_key))
    key, prefix = derived[:32], derived[32:39]
    associated = H("theta/payload/label/v1", name, ("label", label))[:32]
    chunks = max(1, -(-length // CHUNK))
    assert len(sealed) == length + chunks * TAG and blake3(sealed) == digest
    plaintext = b""
    for i in range(chunks):
        nonce = prefix + i.to_bytes(4, "big") + bytes([i == chunks - 1])
        chunk, sealed = sealed[: CHUNK + TAG], sealed[CHUNK + TAG :]
        plaintext += chacha20_poly1305_open(key, nonce, associated, chunk)
    assert len(plaintext) == length
    return plaintext


def rotate_left(word, by):
    return (word << by | word >> 32 - by) & 0xFFFFFFFF


def chacha20_block(key, counter, nonce):
    """RFC 8439, section 2.3."""
    start = list(struct.unpack("<16I", b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce))
    state = start[:]
    columns = [(j, 4 + j, 8 + j, 12 + j) for j in range(4)]
    diagonals = [(j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4) for j in range(4)]
    for a, b, c, d in (columns + diagonals) * 10:
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotate_left(state[z] ^ state[x], by)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(start, state)))


def chacha20(key, counter, nonce, data):
    blocks = range(counter, counter + -(-len(data) // 64))
    stream = b"".join(chacha20_block(key, i, nonce) for i in blocks)
    return bytes(a ^ b for a, b in zip(data, stream))


def poly1305(key, message):
    """RFC 8439, section 2.5."""
    r, s = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF, int.from_bytes(key[16:], "little")
    total = 0
    for i in range(0, len(message), 16):
        total = (total + int.from_bytes(message[i : i + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((total + s) % 2**128).to_bytes(16, "little")


def chacha20_poly1305_open(key, nonce, associated, sealed):
    """RFC 8439, section 2.8."""
    text, tag = sealed[:-TAG], sealed[-TAG:]
    pad = lambda data: data + bytes(-len(data) % 16)
    lengths = struct.pack("<QQ", len(associated), len(text))
    one_time_key = chacha20_block(key, 0, nonce)[:32]
    assert poly1305(one_time_key, pad(associated) + pad(text) + lengths) == tag, "the tag of a chunk"
    return chacha20(key, 1, nonce, text)


IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8


def blake3_compress(chain, block, counter, flags):
    """BLAKE3, section 2.2. The sixteen words of the output."""
    words = list(struct.unpack("<16I", block + bytes(64 - len(block))))
    state = [*chain, *IV[:4], counter & 0xFFFFFFFF, counter >> 32, len(block), flags]
    columns = [(j, 4 + j, 8 + j, 12 + j) for j in range(4)]
    diagonals = [(j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4) for j in range(4)]
    for _ in range(7):
        for number, (a, b, c, d) in enumerate(columns + diagonals):
            for word, first, second in ((words[2 * number], 16, 12), (words[2 * number + 1], 8, 7)):
                state[a] = (state[a] + state[b] + word) & 0xFFFFFFFF
                state[d] = rotate_left(state[d] ^ state[a], 32 - first)
                state[c] = (state[c] + state[d]) & 0xFFFFFFFF
                state[b] = rotate_left(state[b] ^ state[c], 32 - second)
        words = [words[i] for i in PERMUTATION]
    return [state[i] ^ state[i + 8] for i in range(8)] + [state[i + 8] ^ chain[i] for i in range(8)]


def blake3(data):
    """32 bytes of BLAKE3's unkeyed hash."""

    def node(first, chunks, root):
        """The chaining value of the tree over these chunks."""
        if len(chunks) > 1:
            left = 1 << (len(chunks) - 1).bit_length() - 1
            values = node(first, chunks[:left], 0) + node(first + left, chunks[left:], 0)
            return blake3_compress(IV, struct.pack("<16I", *values), 0, PARENT | root)[:8]
        chain, blocks = IV, [chunks[0][i : i + 64] for i in range(0, len(chunks[0]), 64)] or [b""]
        for i, block in enumerate(blocks):
            last = i == len(blocks) - 1
            flags = (CHUNK_START if i == 0 else 0) | (CHUNK_END | root if last else 0)
            chain = blake3_compress(chain, block, first, flags)[:8]
        return chain

    return struct.pack("<8I", *node(0, [data[i : i + 1024] for i in range(0, len(data), 1024)] or [b""], ROOT))
