//! What the calls do, one by one: keys and their attributes, signatures of every mechanism, lengths, mistakes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};
use theta_schemes::signatures::ecdsa::to_der;

use crate::{
    group::{KEYS, command, configure, log, openssl, shared, succeeds, with_keys},
    harness::Group,
    host::Host,
};

fn field(answer: &Value, name: &str) -> Vec<u8> {
    hex::decode(answer[name].as_str().unwrap_or_else(|| panic!("{answer}"))).unwrap()
}

/// What OpenSSL says of a signature, given the public key as the module shows it.
fn verifies(directory: &Path, info: &[u8], message: &[u8], signature: &[u8], more: &[&str]) {
    let dir = tempfile::tempdir_in(directory).unwrap();
    for (name, bytes) in [("key.der", info), ("message", message), ("signature", signature)] {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let words = ["pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-in", "message"];
    let said = openssl(dir.path(), &[&words[..], &["-sigfile", "signature", "-rawin"], more].concat());
    assert!(said.contains("Signature Verified Successfully"), "{said}");
}

#[test]
fn a_token_is_a_group_and_shows_its_keys() {
    let group = shared();
    let mut host = Host::ready(group);
    assert_eq!(host.ok(json!({"do": "slots"}))["count"], 1);
    let token = host.ok(json!({"do": "token"}));
    assert_eq!(token["label"], "theta-group");
    let serial = token["serial"].as_str().unwrap();
    assert!(serial.len() == 16 && serial != "0000000000000000", "{token}");
    let interfaces = host.ok(json!({"do": "interfaces"}));
    assert_eq!(interfaces["versions"], json!([[3, 0], [2, 40]]));
    assert_eq!((&interfaces["names"], &interfaces["best"]), (&json!(["PKCS 11", "PKCS 11"]), &json!([3, 0])));
    assert_ne!(interfaces["wrong"], 0);

    let mut shown: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let listed = host.ok(json!({"do": "list"}));
    for key in listed["keys"].as_array().unwrap() {
        shown.entry(key["label"].as_str().unwrap().to_owned()).or_default().push(key["class"].as_u64().unwrap());
        assert_eq!(field(key, "id").len(), 20);
    }
    let expected = KEYS.map(|(name, _)| (name.to_owned(), vec![2, 3]));
    assert_eq!(shown, BTreeMap::from(expected), "a public and a private key each");

    let mut attribute = |name: &str, key: &str| host.ask(json!({"do": "attribute", "key": key, "name": name}));
    assert_eq!(attribute("value", "p256")["rv"], 0x11, "sensitive");
    assert_eq!(attribute("unknown", "p256")["rv"], 0x12, "no such attribute");
    assert_eq!(attribute("modulus_bits", "rsa")["value"], "0008000000000000");
    assert_eq!(attribute("exponent", "rsa")["value"], "010001");
    assert_eq!(attribute("ec_params", "ed")["value"], "06032b6570");
    // A version is found by its full name, too.
    assert_eq!(attribute("ec_params", "ed@1")["rv"], 0);
    assert_eq!(attribute("extractable", "ed")["value"], "00");
}

/// Everything that the module serves, verified by OpenSSL and by the module.
#[test]
fn every_mechanism_makes_signatures_that_others_verify() {
    const INFO_256: &str = "3031300d060960864801650304020105000420";
    const INFO_512: &str = "3051300d060960864801650304020305000440";
    let group = shared();
    let mut host = Host::ready(group);
    let message = b"a message that the host signs".to_vec();
    let (sha256, sha512) = (hex::encode(Sha256::digest(&message)), hex::encode(Sha512::digest(&message)));
    let plain = hex::encode(&message);
    let pss = ["-digest", "sha256", "-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:32"];
    for (key, mechanism, data, openssl) in [
        ("ed", "eddsa", plain.clone(), &[][..]),
        ("live", "eddsa", plain.clone(), &[]),
        ("p256", "ecdsa", sha256.clone(), &["-digest", "sha256"]),
        ("p256", "ecdsa", sha512.clone(), &["-digest", "sha512"]),
        ("p256", "ecdsa-sha256", plain.clone(), &["-digest", "sha256"]),
        ("k1", "ecdsa", sha256.clone(), &["-digest", "sha256"]),
        ("k1", "ecdsa-sha256", plain.clone(), &["-digest", "sha256"]),
        ("rsa", "rsa", format!("{INFO_256}{sha256}"), &["-digest", "sha256"]),
        ("rsa", "rsa-sha256", plain.clone(), &["-digest", "sha256"]),
        ("rsa512", "rsa", format!("{INFO_512}{sha512}"), &["-digest", "sha512"]),
        ("rsa512", "rsa-sha512", plain.clone(), &["-digest", "sha512"]),
        ("pss", "pss", sha256, &pss),
        ("pss", "pss-sha256", plain, &pss),
    ] {
        let ask = json!({"do": "sign", "key": key, "mechanism": mechanism, "data": data});
        let signature = field(&host.ok(ask), "signature");
        let info = field(&host.ok(json!({"do": "attribute", "key": key, "name": "info"})), "value");
        let standard = if mechanism.starts_with("ecdsa") { to_der(&signature).unwrap() } else { signature.clone() };
        verifies(group.path(), &info, &message, &standard, openssl);
        let verify = |signature: &[u8]| json!({"do": "verify", "key": key, "mechanism": mechanism, "data": data, "signature": hex::encode(signature)});
        host.ok(verify(&signature));
        let mut wrong = signature.clone();
        wrong[9] ^= 1;
        host.fails(0xc0, verify(&wrong));
        host.fails(0xc1, verify(&signature[1..]));
    }
}

/// After a rotation the name means the new version, which signs. The one before is shown for what it has signed, and signs no more.
#[test]
fn the_versions_of_a_rotated_key_are_shown() {
    let mut group = Group::made_with(&["--keys", "twice=ecdsa-p256"]);
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "");
    let labels = |host: &mut Host| {
        let listed = host.ok(json!({"do": "list"}));
        let keys = listed["keys"].as_array().unwrap().iter();
        let shown = keys.map(|key| format!("{} {}", key["class"], key["label"].as_str().unwrap()));
        shown.collect::<BTreeSet<_>>()
    };
    let message = b"a message for two versions".to_vec();
    let text = hex::encode(&message);
    let sign = |key: &str| json!({"do": "sign", "key": key, "mechanism": "ecdsa-sha256", "data": text});
    let mut host = Host::ready(&group);
    assert_eq!(labels(&mut host), ["2 twice", "3 twice"].map(str::to_owned).into());
    let old = field(&host.ok(sign("twice")), "signature");
    group.theta(&["keys", "rotate", "twice"]).ok();

    let mut host = Host::ready(&group);
    // Classes 2 and 3 are public and private keys.
    assert_eq!(labels(&mut host), ["2 twice", "3 twice", "2 twice@1"].map(str::to_owned).into());
    let new = field(&host.ok(sign("twice")), "signature");
    let mut infos = BTreeSet::new();
    for (key, other, signature) in [("twice@1", "twice", &old), ("twice@2", "twice@1", &new)] {
        let exported = group.theta(&["keys", "export", key]).ok().text();
        group.file("version.pem", exported);
        openssl(group.path(), &["pkey", "-pubin", "-in", "version.pem", "-outform", "DER", "-out", "version.der"]);
        let info = std::fs::read(group.path().join("version.der")).unwrap();
        verifies(group.path(), &info, &message, &to_der(signature).unwrap(), &["-digest", "sha256"]);
        let verify = |key: &str| json!({"do": "verify", "key": key, "mechanism": "ecdsa-sha256", "data": text, "signature": hex::encode(signature)});
        host.ok(verify(key));
        host.fails(0xc0, verify(other));
        infos.insert(info);
    }
    assert_eq!(infos.len(), 2);
}

/// Numbers of a private key of stored safe primes, in the words of `openssl asn1parse -genconf`.
const NUMBERS: &str = "import json, sys
stored = json.load(open(sys.argv[1]))['primes'][sys.argv[2]]
p, q = (int(stored[name], 16) for name in 'pq')
d = pow(65537, -1, (p - 1) * (q - 1))
print('asn1=SEQUENCE:key\\n[key]')
for place, number in enumerate([0, p * q, 65537, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p)]):
    print(f'n{place}=INTEGER:{hex(number)}')";

#[test]
fn long_keys_of_rsa_sign() {
    let mut group = Group::made_with(&["--no-keys"]);
    let primes = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/sh00/safe_primes.json");
    let lengths: [u16; 2] = [3072, 4096];
    for bits in lengths {
        let mut python = command(&group, "python3");
        python.args(["-c", NUMBERS, primes, &bits.to_string()]);
        group.file("numbers", succeeds(python));
        openssl(group.path(), &["asn1parse", "-genconf", "numbers", "-noout", "-out", "rsa.der"]);
        openssl(group.path(), &["pkey", "-inform", "DER", "-in", "rsa.der", "-out", "rsa.pem"]);
        let name = format!("rsa-{bits}");
        group.theta(&["keys", "import", "--name", &name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    }
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "");
    let mut host = Host::ready(&group);
    let message = b"a message for a long key".to_vec();
    for bits in lengths {
        let key = format!("rsa-{bits}");
        let length = host.ok(json!({"do": "attribute", "key": key, "name": "modulus_bits"}));
        assert_eq!(field(&length, "value"), u64::from(bits).to_le_bytes());
        let ask = json!({"do": "sign", "key": key, "mechanism": "rsa-sha256", "data": hex::encode(&message)});
        let signature = field(&host.ok(ask), "signature");
        assert_eq!(signature.len(), usize::from(bits / 8));
        let info = field(&host.ok(json!({"do": "attribute", "key": key, "name": "info"})), "value");
        verifies(group.path(), &info, &message, &signature, &["-digest", "sha256"]);
    }
}

#[test]
fn what_a_key_was_not_made_for_is_refused() {
    let mut host = Host::ready(shared());
    for (key, mechanism, data, rv) in [
        ("rsa", "rsa-sha512", "00", 0x68),
        ("rsa", "pss-sha256", "00", 0x68),
        ("rsa", "ecdsa", "00", 0x63),
        ("ed", "ecdsa", "00", 0x63),
        ("rsa", "rsa", "00", 0x20),
        ("p256", "ecdsa", "", 0x21),
        ("ed", "sha256", "00", 0x70),
    ] {
        host.fails(rv, json!({"do": "sign", "key": key, "mechanism": mechanism, "data": data}));
    }
    let said = log(shared());
    assert!(said.contains("rsa@1 (sh00-pkcs1-sha256) does not serve mechanism 0x42"), "{said}");
}

/// Hosts call `C_Sign` without a place for the signature first.
#[test]
fn to_ask_for_the_length_asks_no_node() {
    let group = with_keys();
    let mut host = Host::ready(&group);
    host.ok(json!({"do": "sign", "key": "ed", "mechanism": "eddsa", "data": "01"}));
    let signed = |group: &crate::harness::Group| {
        let audit = group.theta(&["audit", "show", "--node", "1", "--json"]).ok().text();
        audit.matches("\"sign").count()
    };
    let before = signed(&group);
    assert!(before > 0, "the log has what was signed");
    let told = host.ok(json!({"do": "length", "key": "ed", "mechanism": "eddsa", "data": "02"}));
    let expected = json!({"rv": 0, "null": 0, "needed": 64, "too_small": 0x150, "short": 64, "again": 0x90, "untouched": true,
                          "cancelled": 0, "after": 0x91});
    assert_eq!(told, expected);
    for (key, needed) in [("rsa", 256), ("p256", 64)] {
        let mechanism = if key == "rsa" { "rsa-sha256" } else { "ecdsa-sha256" };
        let told = host.ok(json!({"do": "length", "key": key, "mechanism": mechanism, "data": "02"}));
        assert_eq!(told["needed"], needed);
    }
    assert_eq!(signed(&group), before);
    host.ok(json!({"do": "sign", "key": "ed", "mechanism": "eddsa", "data": "02"}));
    assert!(signed(&group) > before, "a signature is seen where the question was not");
}

#[test]
fn messages_come_in_parts_and_are_long() {
    let group = shared();
    let mut host = Host::ready(group);
    let message: Vec<u8> = (0..200_000_u32).map(|place| (place % 251) as u8).collect();
    for (key, mechanism, openssl) in [("ed", "eddsa", &[][..]), ("p256", "ecdsa-sha256", &["-digest", "sha256"])] {
        let ask =
            json!({"do": "sign", "key": key, "mechanism": mechanism, "data": hex::encode(&message), "parts": 4096});
        let signature = field(&host.ok(ask), "signature");
        let info = field(&host.ok(json!({"do": "attribute", "key": key, "name": "info"})), "value");
        let standard = if key == "p256" { to_der(&signature).unwrap() } else { signature };
        verifies(group.path(), &info, &message, &standard, openssl);
    }
}

#[test]
fn no_wrong_call_does_harm() {
    let mut host = Host::ready(shared());
    let told = host.ok(json!({"do": "wrong", "key": "ed"}));
    let expected = json!({
        "no session": 0xb3, "no key": 0x60, "no mechanism of ours": 0x70, "a public key signs": 0x68,
        "sign without init": 0x91, "final without init": 0x91, "verify without init": 0x91, "null info": 7,
        "null count": 7, "no slot": 3, "no object": 0x82, "too many attributes": 7, "a huge attribute": 7,
        "a null attribute": 7, "null template": 7, "find without init": 0x91, "parallel": 0xb4, "generate": 0x54,
        "encrypt": 0x54, "destroy": 0x1b, "initialise twice": 0x191, "a security officer": 0x103, "a long PIN": 0xa2,
        "init twice": 0x90, "null length": 7, "null data": 7, "endless data": 0x21, "random": 0, "random is zero": 0
    });
    assert_eq!(told["told"], expected);
    host.ok(json!({"do": "sign", "key": "ed", "mechanism": "eddsa", "data": "01"}));
    // After the end there is nothing, and then everything again.
    host.ok(json!({"do": "finalise"}));
    host.fails(0x190, json!({"do": "finalise"}));
    host.fails(0x190, json!({"do": "slots"}));
    // Some locks of the host's are none; what p11-kit says of threads and locks is taken from it.
    host.fails(7, json!({"do": "initialise", "locks": 3}));
    host.ok(json!({"do": "initialise", "locks": 4, "flags": 3}));
    host.ok(json!({"do": "sign", "key": "ed", "mechanism": "eddsa", "data": "01"}));
    host.ok(json!({"do": "finalise"}));
    host.ok(json!({"do": "initialise"}));
    host.ok(json!({"do": "sign", "key": "ed", "mechanism": "eddsa", "data": "01"}));
}

#[test]
fn without_a_configuration_it_says_what_to_do() {
    let group = with_keys();
    group.file("pkcs11.toml", "[[token]]\nclient = \"host.client\"\nlable = \"x\"\n");
    let mut host = Host::start(&group);
    host.fails(5, json!({"do": "initialise"}));
    // Where nobody hears it, the host lives on.
    Host::unheard(&group).fails(5, json!({"do": "initialise"}));
    // A client file that is missing takes its token away, and no other.
    group.file(
        "pkcs11.toml",
        "log = \"module.log\"\n[[token]]\nclient = \"absent.client\"\n[[token]]\nclient = \"theta-group/client\"\nlabel = \"other\"\n",
    );
    host.ok(json!({"do": "initialise"}));
    assert_eq!(host.ok(json!({"do": "slots"}))["count"], 1);
    host.fails(0xe0, json!({"do": "token", "slot": 0}));
    assert_eq!(host.ok(json!({"do": "token", "slot": 1}))["label"], "other");
    assert!(log(&group).contains("a token is absent") && log(&group).contains("absent.client"), "{}", log(&group));
    configure(&group, "");
}

/// With `log = "stderr"` and a host whose standard error nobody reads: each line is a reason, and none of them stops a signature.
#[test]
fn a_log_that_nobody_reads_stops_no_signature() {
    let group = with_keys();
    group.file("pkcs11.toml", "log = \"stderr\"\n[[token]]\nclient = \"host.client\"\n");
    let mut host = Host::unread(&group);
    host.ok(json!({"do": "initialise"}));
    // More than a pipe takes (64 KiB).
    for _ in 0..1_500 {
        host.fails(0x68, json!({"do": "sign", "key": "rsa", "mechanism": "rsa-sha512", "data": "00"}));
    }
    host.ok(json!({"do": "sign", "key": "ed", "mechanism": "eddsa", "data": "01"}));
}
