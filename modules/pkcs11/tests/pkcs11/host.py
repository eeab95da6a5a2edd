"""A host of PKCS#11 modules, on nothing but Python's ctypes: reads one call a line as JSON, answers one line each.

It does what hosts do that are in libraries (threads, forks), and what no good host does (wrong handles, null pointers).
"""

import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time

Long = ctypes.c_ulong
Bytes = ctypes.POINTER(ctypes.c_ubyte)
UNKNOWN = 2 ** 64 - 1

CKA = {"class": 0, "token": 1, "private": 2, "label": 3, "value": 0x11, "key_type": 0x100, "id": 0x102, "sensitive": 0x103,
       "modulus": 0x120, "modulus_bits": 0x121, "exponent": 0x122, "ec_params": 0x180, "ec_point": 0x181, "sign": 0x108,
       "local": 0x163, "generated_by": 0x166, "always_authenticate": 0x202, "extractable": 0x162, "info": 0x129, "unknown": 0x80001234}
CKM = {"eddsa": 0x1057, "ecdsa": 0x1041, "ecdsa-sha256": 0x1044, "rsa": 1, "rsa-sha256": 0x40, "rsa-sha512": 0x42,
       "pss": 0xD, "pss-sha256": 0x43, "sha256": 0x250}
PUBLIC, PRIVATE = 2, 3


class Attribute(ctypes.Structure):
    _fields_ = [("type", Long), ("value", ctypes.c_void_p), ("length", Long)]


class Mechanism(ctypes.Structure):
    _fields_ = [("type", Long), ("parameters", ctypes.c_void_p), ("length", Long)]


class TokenInfo(ctypes.Structure):
    _fields_ = [("label", ctypes.c_char * 32), ("manufacturer", ctypes.c_char * 32), ("model", ctypes.c_char * 16),
                ("serial", ctypes.c_char * 16), ("flags", Long), ("numbers", Long * 10), ("versions", ctypes.c_ubyte * 4),
                ("time", ctypes.c_char * 16)]


Lock = ctypes.CFUNCTYPE(Long, ctypes.c_void_p)


class InitializeArguments(ctypes.Structure):
    _fields_ = [("locks", Lock * 4), ("flags", Long), ("reserved", ctypes.c_void_p)]


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_ubyte), ("minor", ctypes.c_ubyte)]


class Interface(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("functions", ctypes.c_void_p), ("flags", Long)]


NAMES = """Initialize Finalize GetInfo GetFunctionList GetSlotList GetSlotInfo GetTokenInfo GetMechanismList GetMechanismInfo
InitToken InitPIN SetPIN OpenSession CloseSession CloseAllSessions GetSessionInfo GetOperationState SetOperationState Login Logout
CreateObject CopyObject DestroyObject GetObjectSize GetAttributeValue SetAttributeValue FindObjectsInit FindObjects FindObjectsFinal
EncryptInit Encrypt EncryptUpdate EncryptFinal DecryptInit Decrypt DecryptUpdate DecryptFinal DigestInit Digest DigestUpdate DigestKey
DigestFinal SignInit Sign SignUpdate SignFinal SignRecoverInit SignRecover VerifyInit Verify VerifyUpdate VerifyFinal VerifyRecoverInit
VerifyRecover DigestEncryptUpdate DecryptDigestUpdate SignEncryptUpdate DecryptVerifyUpdate GenerateKey GenerateKeyPair WrapKey
UnwrapKey DeriveKey SeedRandom GenerateRandom GetFunctionStatus CancelFunction WaitForSlotEvent""".split()


def functions(library):
    """The table of version 2.40, as functions by name."""
    table = ctypes.c_void_p()
    library.C_GetFunctionList.restype = Long
    assert library.C_GetFunctionList(ctypes.byref(table)) == 0
    # The version, and then pointers.
    pointers = (ctypes.c_void_p * (len(NAMES) + 1)).from_address(table.value)
    call = ctypes.CFUNCTYPE(Long)
    found = {name: ctypes.cast(pointers[1 + place], call) for place, name in enumerate(NAMES)}
    for function in found.values():
        function.restype = Long
        function.argtypes = None
    return found


class Host:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.call = functions(self.library)
        self.session = None

    def c(self, name, *arguments):
        # Python's integers are C's ints where nothing says otherwise.
        return self.call[name](*(Long(a) if isinstance(a, int) else a for a in arguments))

    def initialise(self, locks=0, flags=0):
        """With so many of the four locks of a host's own, as p11-kit brings all; without any arguments if there is nothing to say."""
        if not locks and not flags:
            return self.c("Initialize", None)
        self.kept = [Lock(lambda _: 5) for _ in range(locks)] + [Lock() for _ in range(4 - locks)]
        return self.c("Initialize", ctypes.byref(InitializeArguments((Lock * 4)(*self.kept), flags, None)))

    def open(self, slot=0, flags=6):
        session = Long()
        rv = self.c("OpenSession", slot, flags, None, None, ctypes.byref(session))
        return rv, session.value

    def own(self):
        if self.session is None:
            rv, self.session = self.open()
            assert rv == 0, hex(rv)
        return self.session

    def template(self, wanted):
        kept, attributes = [], (Attribute * max(1, len(wanted)))()
        for place, (kind, value) in enumerate(wanted):
            buffer = ctypes.create_string_buffer(value, max(1, len(value)))
            kept.append(buffer)
            attributes[place] = Attribute(kind, ctypes.cast(buffer, ctypes.c_void_p), len(value))
        return attributes, kept

    def find(self, wanted, session=None):
        session = session or self.own()
        attributes, _kept = self.template(wanted)
        rv = self.c("FindObjectsInit", session, attributes, len(wanted))
        if rv:
            return rv, []
        handles, found = [], (Long * 3)()
        while True:
            count = Long()
            rv = self.c("FindObjects", session, found, 3, ctypes.byref(count))
            handles += found[:count.value]
            if rv or count.value == 0:
                break
        assert self.c("FindObjectsFinal", session) == 0
        return rv, handles

    def key(self, label, kind=PRIVATE):
        rv, found = self.find(
                              [(CKA["class"], bytes(Long(kind))), (CKA["label"], label.encode())])
        if rv or len(found) != 1:
            raise LookupError(f"{label}: {hex(rv)}, {found}")
        return found[0]

    def attribute(self, handle, kind):
        attribute = (Attribute * 1)(Attribute(kind, None, 0))
        rv = self.c("GetAttributeValue", self.own(), handle, attribute, 1)
        if rv:
            assert attribute[0].length == UNKNOWN
            return rv, None
        buffer = ctypes.create_string_buffer(max(1, attribute[0].length))
        attribute[0].value = ctypes.cast(buffer, ctypes.c_void_p)
        rv = self.c("GetAttributeValue", self.own(), handle, attribute, 1)
        return rv, buffer.raw[:attribute[0].length]

    def generate(self, ask, session=None):
        """With a template as hosts make it, and what `public` and `private` say beyond it; an empty value takes an attribute out."""
        both = {"token": b"\1"}
        for name, value in (("id", bytes.fromhex(ask.get("id", ""))), ("label", ask.get("label", "").encode())):
            if value:
                both[name] = value
        of_class = {"public": dict(both), "private": {**both, "private": b"\1", "sensitive": b"\1", "sign": b"\1"}}
        if "curve" in ask:
            of_class["public"]["ec_params"] = bytes.fromhex(ask["curve"])
        if "bits" in ask:
            of_class["public"] |= {"modulus_bits": bytes(Long(ask["bits"])), "exponent": b"\1\0\1"}
        templates = []
        for name, attributes in of_class.items():
            attributes |= {kind: bytes.fromhex(value) for kind, value in ask.get(name, {}).items()}
            wanted = [(CKA[kind], value) for kind, value in attributes.items() if value]
            templates.append((self.template(wanted), len(wanted)))
        ((public, _kept), publics), ((private, _kept_too), privates) = templates
        made, handles = self.mechanism(ask["mechanism"]), (Long(), Long())
        if session is None:
            session = self.open(flags=ask["flags"])[1] if "flags" in ask else self.own()
        rv = self.c("GenerateKeyPair", session, ctypes.byref(made), public, publics, private, privates,
                    *(ctypes.byref(handle) for handle in handles))
        return {"rv": rv, "info": self.attribute(handles[1].value, CKA["info"])[1].hex() if rv == 0 else None}

    def mechanism(self, name):
        if name.startswith("pss"):
            parameters = (Long * 3)(CKM["sha256"], 2, 32)
            made = Mechanism(CKM[name], ctypes.cast(parameters, ctypes.c_void_p), ctypes.sizeof(parameters))
            made.kept = parameters
            return made
        return Mechanism(CKM[name] if name in CKM else int(name, 0), None, 0)

    def sign(self, label, mechanism, data, session=None, handle=None, parts=None, room=4096):
        session = session or self.own()
        handle = handle or self.key(label)
        made = self.mechanism(mechanism)
        rv = self.c("SignInit", session, ctypes.byref(made), handle)
        if rv:
            return rv, b""
        signature, length = (ctypes.c_ubyte * room)(), Long(room)
        if parts:
            for at in range(0, len(data), parts):
                part = data[at:at + parts]
                rv = self.c("SignUpdate", session, ctypes.c_char_p(part), len(part))
                if rv:
                    return rv, b""
            rv = self.c("SignFinal", session, signature, ctypes.byref(length))
        else:
            rv = self.c("Sign", session, ctypes.c_char_p(data), len(data), signature, ctypes.byref(length))
        return rv, bytes(signature[:length.value]) if rv == 0 else b""

    def verify(self, label, mechanism, data, signature, handle=None):
        made = self.mechanism(mechanism)
        rv = self.c("VerifyInit", self.own(), ctypes.byref(made), handle or self.key(label, PUBLIC))
        return rv or self.c("Verify", self.own(), ctypes.c_char_p(data), len(data), ctypes.c_char_p(signature), len(signature))


def do(host, ask):
    what = ask["do"]
    label, mechanism = ask.get("key"), ask.get("mechanism")
    data = bytes.fromhex(ask.get("data", ""))
    if what == "initialise":
        return {"rv": host.initialise(ask.get("locks", 0), ask.get("flags", 0))}
    if what == "finalise":
        host.session = None
        return {"rv": host.c("Finalize", None)}
    if what == "slots":
        count = Long()
        rv = host.c("GetSlotList", ctypes.c_ubyte(1), None, ctypes.byref(count))
        return {"rv": rv, "count": count.value}
    if what == "token":
        info = TokenInfo()
        rv = host.c("GetTokenInfo", ask.get("slot", 0), ctypes.byref(info))
        return {"rv": rv, "label": info.label.decode().rstrip(), "serial": info.serial.decode(), "flags": info.flags}
    if what == "interfaces":
        count = Long()
        get = host.library.C_GetInterfaceList
        get.restype = host.library.C_GetInterface.restype = Long
        assert get(None, ctypes.byref(count)) == 0
        list_ = (Interface * count.value)()
        assert get(list_, ctypes.byref(count)) == 0
        versions = [Version.from_address(i.functions) for i in list_]
        found = ctypes.POINTER(Interface)()
        assert host.library.C_GetInterface(None, None, ctypes.byref(found), Long(0)) == 0
        best = Version.from_address(found.contents.functions)
        wrong = host.library.C_GetInterface(b"PKCS 12", None, ctypes.byref(found), Long(0))
        return {"rv": 0, "names": [i.name.decode() for i in list_], "versions": [[v.major, v.minor] for v in versions],
                "best": [best.major, best.minor], "wrong": wrong}
    if what == "login":
        pin = ask["pin"].encode()
        return {"rv": host.c("Login", host.own(), ask.get("user", 1), ctypes.c_char_p(pin), len(pin))}
    if what == "logout":
        return {"rv": host.c("Logout", host.own())}
    if what == "list":
        rv, handles = host.find([])
        keys = []
        for handle in handles:
            get = lambda name: host.attribute(handle, CKA[name])[1] or b""
            keys.append({"class": int.from_bytes(get("class"), "little"), "label": get("label").decode(), "id": get("id").hex(),
                         "info": get("info").hex()})
        return {"rv": rv, "keys": keys}
    if what == "attribute":
        rv, value = host.attribute(host.key(label, ask.get("class", PRIVATE)), CKA[ask["name"]])
        return {"rv": rv, "value": value.hex() if value is not None else None}
    if what == "sign":
        handle, began = host.key(label), time.monotonic()
        rv, signature = host.sign(label, mechanism, data, handle=handle, parts=ask.get("parts"), room=ask.get("room", 4096))
        return {"rv": rv, "signature": signature.hex(), "seconds": time.monotonic() - began}
    if what == "verify":
        return {"rv": host.verify(label, mechanism, data, bytes.fromhex(ask["signature"]))}
    if what == "length":
        # As every host begins: no place for the signature, then too little.
        made, session = host.mechanism(mechanism), host.own()
        first = host.c("SignInit", session, ctypes.byref(made), host.key(label))
        length = Long()
        null = host.c("Sign", session, ctypes.c_char_p(data), len(data), None, ctypes.byref(length))
        needed = length.value
        small, short = (ctypes.c_ubyte * 8)(*[7] * 8), Long(8)
        too_small = host.c("Sign", session, ctypes.c_char_p(data), len(data), small, ctypes.byref(short))
        again = host.c("SignInit", session, ctypes.byref(made), host.key(label))
        untouched = bytes(small) == bytes([7] * 8)
        cancelled = host.c("SignInit", session, None, 0)
        after = host.c("Sign", session, ctypes.c_char_p(data), len(data), None, ctypes.byref(length))
        return {"rv": first, "null": null, "needed": needed, "too_small": too_small, "short": short.value, "again": again,
                "untouched": untouched, "cancelled": cancelled, "after": after}
    if what == "threads":
        handle, count = host.key(label), ask["count"]
        results = [None] * count
        start = threading.Barrier(count)

        def work(place):
            rv, session = host.open()
            start.wait()
            if rv == 0:
                message = f"message {place}".encode()
                rv, signature = host.sign(label, mechanism, message, session=session, handle=handle)
                results[place] = [rv, message.hex(), signature.hex()]
                host.c("CloseSession", session)
            else:
                results[place] = [rv, "", ""]

        threads = [threading.Thread(target=work, args=(place,)) for place in range(count)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"rv": 0, "results": results, "seconds": time.monotonic() - began}
    if what == "fork":
        # A daemon: initialised before it forks, and again in the child.
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                host.session = None
                before = host.c("GetSlotList", ctypes.c_ubyte(1), None, ctypes.byref(Long()))
                began = host.initialise()
                rv, signature = host.sign(label, mechanism, data)
                told = {"before": before, "began": began, "rv": rv, "signature": signature.hex()}
            except BaseException as error:
                told = {"error": repr(error)}
            os.write(write, json.dumps(told).encode())
            os._exit(0)
        os.close(write)
        told = b""
        while part := os.read(read, 65536):
            told += part
        os.close(read)
        os.waitpid(child, 0)
        return json.loads(told)
    if what == "limit files":
        # No more files than there are; a negative number: as many as at first.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (ask["count"] if ask["count"] >= 0 else most, most))
        return {"rv": 0}
    if what == "destroy":
        # Hosts look for both objects before they destroy one of them.
        handles = [host.key(label, kind) for kind in ask.get("classes", [PRIVATE])]
        told = [host.c("DestroyObject", host.own(), handle) for handle in handles]
        return {"rv": next((rv for rv in told if rv), 0)}
    if what == "generate":
        return host.generate(ask)
    if what == "generate at once":
        count = ask["count"]
        results, start = [None] * count, threading.Barrier(count)

        def make(place):
            rv, session = host.open()
            start.wait()
            results[place] = host.generate({**ask, "id": f"{ask['id']}{place:02x}"}, session) if rv == 0 else {"rv": rv}

        threads = [threading.Thread(target=make, args=(place,)) for place in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"rv": 0, "results": results}
    if what == "set":
        wanted = [(CKA[name], bytes.fromhex(value)) for name, value in ask["values"].items()]
        attributes, _kept = host.template(wanted)
        return {"rv": host.c("SetAttributeValue", host.own(), host.key(label, ask.get("class", PRIVATE)), attributes, len(wanted))}
    if what == "wrong":
        return wrong_calls(host, label)
    raise ValueError(what)


def wrong_calls(host, label):
    """What no good host does. Each answer is the return value of one call."""
    session, key, length = host.own(), host.key(label), Long(4096)
    eddsa, nonsense, buffer = host.mechanism("eddsa"), host.mechanism("0x12345678"), (ctypes.c_ubyte * 4096)()
    huge = (Attribute * 1)(Attribute(CKA["label"], ctypes.cast(buffer, ctypes.c_void_p), UNKNOWN))
    null_value = (Attribute * 1)(Attribute(CKA["label"], None, 5))
    c = host.c
    told = {
        "no session": c("SignInit", 999999, ctypes.byref(eddsa), key),
        "no key": c("SignInit", session, ctypes.byref(eddsa), 999999),
        "no mechanism of ours": c("SignInit", session, ctypes.byref(nonsense), key),
        "a public key signs": c("SignInit", session, ctypes.byref(eddsa), host.key(label, PUBLIC)),
        "sign without init": c("Sign", session, ctypes.c_char_p(b"a"), 1, buffer, ctypes.byref(length)),
        "final without init": c("SignFinal", session, buffer, ctypes.byref(length)),
        "verify without init": c("Verify", session, ctypes.c_char_p(b"a"), 1, buffer, 64),
        "null info": c("GetInfo", None),
        "null count": c("GetSlotList", ctypes.c_ubyte(1), None, None),
        "no slot": c("GetTokenInfo", 77, ctypes.byref(TokenInfo())),
        "no object": c("GetAttributeValue", session, 999999, huge, 0),
        "too many attributes": c("FindObjectsInit", session, huge, UNKNOWN),
        "a huge attribute": c("FindObjectsInit", session, huge, 1),
        "a null attribute": c("FindObjectsInit", session, null_value, 1),
        "null template": c("FindObjectsInit", session, None, 1),
        "find without init": c("FindObjects", session, ctypes.byref(length), 1, ctypes.byref(length)),
        "parallel": host.open(flags=2)[0],
        "generate": c("GenerateKeyPair", session, ctypes.byref(eddsa), None, 0, None, 0, ctypes.byref(Long()), ctypes.byref(Long())),
        "encrypt": c("EncryptInit", session, ctypes.byref(eddsa), key),
        "destroy": c("DestroyObject", session, key),
        "initialise twice": host.initialise(),
        "a security officer": c("Login", session, 0, ctypes.c_char_p(b"1"), 1),
        "a long PIN": c("Login", session, 1, ctypes.c_char_p(b"1"), UNKNOWN),
    }
    assert c("SignInit", session, ctypes.byref(eddsa), key) == 0
    told["init twice"] = c("SignInit", session, ctypes.byref(eddsa), key)
    told["null length"] = c("Sign", session, ctypes.c_char_p(b"a"), 1, buffer, None)
    assert c("SignInit", session, ctypes.byref(eddsa), key) == 0
    told["null data"] = c("Sign", session, None, 5, buffer, ctypes.byref(length))
    assert c("SignInit", session, ctypes.byref(eddsa), key) == 0
    told["endless data"] = c("Sign", session, ctypes.c_char_p(b"a"), UNKNOWN, buffer, ctypes.byref(length))
    told["random"] = c("GenerateRandom", session, buffer, 32)
    told["random is zero"] = int(bytes(buffer[:32]) == bytes(32))
    return {"rv": 0, "told": told}


def main():
    # As in most programs: a write to what the other end has closed ends the process, unless it is kept from it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    host = Host(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = do(host, json.loads(line))
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
