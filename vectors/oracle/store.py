"""Stores and backups as they lie on a disk: spec/store.md."""

from argon2 import argon2id
from gcm_siv import open_sealed
from transcript import H

FORMAT, SEALING = 7, 1
PASSPHRASE = b"vector passphrase"
# The tables in clear, and those that are in backups by their codes there.
CLEAR = ("head", "burnt", "used")
CARRIED = {1: "keys", 2: "shares", 3: "slots", 4: "marks", 5: "audit", 6: "identity", 7: "generations", 8: "used"}
CARRIED |= {9: "frozen", 10: "quarantined"}


class Fields:
    """Reads the fields of a record, one after the other."""

    def __init__(self, data):
        self.data = data

    def take(self, length):
        assert length <= len(self.data), "a record ends early"
        taken, self.data = self.data[:length], self.data[length:]
        return taken

    def number(self, length):
        return int.from_bytes(self.take(length), "big")

    def field(self):
        return self.take(self.number(4))

    def end(self):
        assert not self.data, "a record goes on after its end"


def unseal(store_key, table, key, sealed):
    """The record of this key in this table."""
    sealed = Fields(sealed)
    assert sealed.number(1) == SEALING
    derived = H("theta/store/record/v1", ("store key", store_key), ("salt", sealed.take(32)))
    associated = bytes([SEALING]) + len(table).to_bytes(8, "big") + table.encode() + key
    return open_sealed(derived[:32], derived[32:44], associated, sealed.data)


def unwrap(table, head):
    """The key in a head that the passphrase wraps, and the store's id."""
    fields = Fields(head)
    assert fields.number(1) == FORMAT
    store_id = fields.take(16)
    method = fields.take(29)
    costs = Fields(method)
    assert costs.number(1) == 1, "a passphrase"
    memory, passes, lanes = (costs.number(4) for _ in range(3))
    sealed = fields.take(1 + 32 + 32 + 16)
    fields.end()
    stretched = argon2id(PASSPHRASE, costs.take(16), memory, passes, lanes, 32)
    wrapping = H("theta/store/wrapping-key/v1", ("kind", b"argon2id"), ("secret", stretched))[:32]
    associated = bytes([FORMAT]) + len(store_id).to_bytes(4, "big") + store_id + method
    key = unseal(wrapping, table, associated, sealed)
    assert len(key) == 32
    return key, store_id


def records(tables):
    """All records of the store in clear, by table and key, and the store's id."""
    store_key, store_id = unwrap("head", bytes.fromhex(tables["head"][b"store".hex()]))
    opened = {}
    for table, rows in tables.items():
        for key, row in rows.items():
            key, row = bytes.fromhex(key), bytes.fromhex(row)
            record = row if table in CLEAR else unseal(store_key, table, key, row)
            assert record[0] == FORMAT, f"{table}: another format"
            opened[table, key] = record
    return opened, store_id


def backup_records(backup):
    """All records of the backup by table and key, its first record, and the store's id."""
    fields = Fields(backup)
    assert fields.take(12) == b"theta-backup"
    head = fields.take(fields.number(2))
    key, store_id = unwrap("backup", head)
    derived = H("theta/store/backup/v1", ("key", key), ("head", head))
    contents, last, count = b"", False, 0
    while not last:
        length = fields.number(4)
        last, length = length >> 31 == 1, length & 0x7FFFFFFF
        nonce = derived[32:39] + count.to_bytes(4, "big") + bytes([last])
        contents += open_sealed(derived[:32], nonce, b"", fields.take(length))
        count += 1
    fields.end()
    contents = Fields(contents)
    origin, opened, before = contents.field(), {}, (0, b"")
    while (code := contents.number(1)) != 0:
        key = contents.field()
        assert (code, key) > before, "records are not ascending"
        before = code, key
        opened[CARRIED[code], key] = contents.field()
    contents.end()
    return opened, origin, store_id


def check(file):
    """A store and its backup: everything opens, and the backup has of the store what it should."""
    stored, store_id = records(file["tables"])
    saved, origin, same_id = backup_records(bytes.fromhex(file["backup"]))
    assert same_id == store_id and origin[: 1 + 16] == bytes([FORMAT]) + store_id
    assert saved == {at: record for at, record in stored.items() if at[0] in CARRIED.values()}
    hashes = {}
    for (table, key), record in sorted(stored.items()):
        if table == "shares":
            # Its key, of a name, a version and an epoch; and the share, which the store does not look into.
            name, zero, place = key[:-13], key[-13], Fields(key[-12:])
            assert ("keys", name) in stored and zero == 0 and place.number(4) > 0 and len(record) > 1
        if table == "audit":
            fields, index = Fields(record[1:]), int.from_bytes(key, "big")
            assert fields.take(32) == hashes.get(index - 1, bytes(32)), "the log is not whole"
            hashes[index] = fields.take(32)
            fields.field()
            fields.end()
    shares = sum(table == "shares" for table, _ in stored)
    return f"{len(stored)} records, {shares} shares, a backup of {len(saved)}"
