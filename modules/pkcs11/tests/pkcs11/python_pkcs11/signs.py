"""A program on `python-pkcs11`: makes a key pair of the kind that it is told, finds it again, signs the file `message`, and writes `key.der`
and `signature` as OpenSSL reads them.
"""

import hashlib
import sys

import pkcs11
from asn1crypto.core import OctetString
from asn1crypto.keys import PublicKeyInfo, RSAPublicKey
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass
from pkcs11.util.ec import encode_ec_public_key, encode_ecdsa_signature, encode_named_curve_parameters
from pkcs11.util.rsa import encode_rsa_public_key

ED25519 = "1.3.101.112"
# What stands before the 32 bytes of a public key of Ed25519 (RFC 8410, section 4).
ED25519_INFO = bytes.fromhex("302a300506032b6570032100")
KINDS = {
    "p256": (KeyType.EC, {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}, Mechanism.ECDSA_SHA256),
    "p256-digest": (KeyType.EC, {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}, Mechanism.ECDSA),
    "ed25519": (KeyType.EC_EDWARDS, {Attribute.EC_PARAMS: encode_named_curve_parameters(ED25519)}, Mechanism.EDDSA),
    "rsa": (KeyType.RSA, None, Mechanism.SHA256_RSA_PKCS),
}


def make(session, kind, **names):
    key_type, parameters, _ = KINDS[kind]
    if parameters is None:
        return session.generate_keypair(key_type, 2048, store=True, **names)
    domain = session.create_domain_parameters(key_type, parameters, local=True)
    return domain.generate_keypair(store=True, **names)


def public_key(key, key_type):
    if key_type == KeyType.EC:
        return encode_ec_public_key(key)
    if key_type == KeyType.RSA:
        return PublicKeyInfo.wrap(RSAPublicKey.load(encode_rsa_public_key(key)), "rsa").dump()
    return ED25519_INFO + bytes(OctetString.load(key[Attribute.EC_POINT]))


def main(module, token_label, kind):
    key_type, _, mechanism = KINDS[kind]
    identity = kind.encode().ljust(20, b"\0")
    with open("message", "rb") as file:
        message = file.read()
    token = pkcs11.lib(module).get_token(token_label=token_label)
    with token.open(rw=True) as session:
        public, private = make(session, kind, id=identity, label=kind)
        assert (public.label, private.label, private.id) == (kind, kind, identity)
        assert private[Attribute.LOCAL] and not private[Attribute.EXTRACTABLE]
    # As the program does it that comes back a day later.
    with token.open() as session:
        found = session.get_key(key_type=key_type, object_class=ObjectClass.PRIVATE_KEY, id=identity)
        public = session.get_key(key_type=key_type, object_class=ObjectClass.PUBLIC_KEY, label=kind)
        data = hashlib.sha256(message).digest() if mechanism == Mechanism.ECDSA else message
        signature = found.sign(data, mechanism=mechanism)
        assert public.verify(data, signature, mechanism=mechanism)
        assert not public.verify(data, bytes(len(signature)), mechanism=mechanism)
        with open("key.der", "wb") as file:
            file.write(public_key(public, key_type))
    if key_type == KeyType.EC:
        signature = encode_ecdsa_signature(signature)
    with open("signature", "wb") as file:
        file.write(signature)


main(*sys.argv[1:])
