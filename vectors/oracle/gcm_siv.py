"""AES-256-GCM-SIV (RFC 8452), which Python's library does not have."""

import struct

# x^128 + x^127 + x^126 + x^121 + 1, the lowest coefficient in the lowest bit.
FIELD = 1 | 1 << 121 | 1 << 126 | 1 << 127 | 1 << 128


def doubled(byte):
    """The byte times x, modulo the polynomial of AES."""
    return (byte << 1 ^ (0x11B if byte & 0x80 else 0)) & 0xFF


def substitutions():
    """The S-box of FIPS 197, section 5.1.1."""
    power, inverse = [1], [0] * 256
    while len(power) < 255:
        power.append(doubled(power[-1]) ^ power[-1])
    for i, byte in enumerate(power):
        inverse[byte] = power[-i % 255]
    turn = lambda byte, by: (byte << by | byte >> 8 - by) & 0xFF
    return [b ^ turn(b, 1) ^ turn(b, 2) ^ turn(b, 3) ^ turn(b, 4) ^ 0x63 for b in inverse]


SBOX = substitutions()


class Aes256:
    """The block cipher of FIPS 197 with a key of 32 bytes."""

    def __init__(self, key):
        words, constant = [key[i : i + 4] for i in range(0, 32, 4)], 1
        while len(words) < 60:
            word = words[-1]
            if len(words) % 8 == 0:
                word = bytes(SBOX[byte] for byte in word[1:] + word[:1])
                word, constant = bytes([word[0] ^ constant]) + word[1:], doubled(constant)
            elif len(words) % 8 == 4:
                word = bytes(SBOX[byte] for byte in word)
            words.append(bytes(a ^ b for a, b in zip(words[-8], word)))
        self.keys = [b"".join(words[i : i + 4]) for i in range(0, 60, 4)]

    def encrypt(self, block):
        state = bytes(a ^ b for a, b in zip(block, self.keys[0]))
        for key in self.keys[1:-1]:
            state = self.shifted(state)
            mixed = []
            for i in range(0, 16, 4):
                column = state[i : i + 4]
                every = column[0] ^ column[1] ^ column[2] ^ column[3]
                mixed += [column[j] ^ every ^ doubled(column[j] ^ column[(j + 1) % 4]) for j in range(4)]
            state = bytes(a ^ b for a, b in zip(mixed, key))
        return bytes(a ^ b for a, b in zip(self.shifted(state), self.keys[-1]))

    @staticmethod
    def shifted(state):
        """Bytes substituted and rows shifted."""
        return bytes(SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16))


def dot(a, b):
    """a b x^-128."""
    product = 0
    for i in range(128):
        if b >> i & 1:
            product ^= a << i
    for _ in range(128):
        product = (product ^ FIELD if product & 1 else product) >> 1
    return product


def polyval(key, data):
    """Section 3, of whole blocks."""
    key, total = int.from_bytes(key, "little"), 0
    for i in range(0, len(data), 16):
        total = dot(total ^ int.from_bytes(data[i : i + 16], "little"), key)
    return total.to_bytes(16, "little")


def open_sealed(key, nonce, associated, sealed):
    """The plaintext (section 5); an assertion fails if anything was changed."""
    generator = Aes256(key)
    derived = b"".join(generator.encrypt(struct.pack("<I", i) + nonce)[:8] for i in range(6))
    cipher = Aes256(derived[16:])
    text, tag = sealed[:-16], sealed[-16:]
    start, last = int.from_bytes(tag[:4], "little"), bytes([tag[15] | 0x80])
    stream = b""
    for i in range(-(-len(text) // 16)):
        stream += cipher.encrypt(((start + i) % 2**32).to_bytes(4, "little") + tag[4:15] + last)
    plaintext = bytes(a ^ b for a, b in zip(text, stream))
    pad = lambda data: data + bytes(-len(data) % 16)
    lengths = struct.pack("<QQ", 8 * len(associated), 8 * len(plaintext))
    total = polyval(derived[:16], pad(associated) + pad(plaintext) + lengths)
    total = bytes(a ^ b for a, b in zip(total, nonce + bytes(4)))
    assert cipher.encrypt(total[:15] + bytes([total[15] & 0x7F])) == tag, "the tag of a record"
    return plaintext
