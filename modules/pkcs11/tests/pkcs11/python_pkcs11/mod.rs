//! `python-pkcs11`, the library by which programs in Python use tokens.

use std::{env, path::PathBuf};

use crate::{
    generation::ready,
    group::{SAFE_PRIMES, command, module, openssl, succeeds},
    harness::Group,
};

/// The program.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules/pkcs11/tests/pkcs11/python_pkcs11/signs.py");

/// The Python into which `cargo xtask test` has installed the library; without it, that of `PATH` has to have it.
const INSTALLED: &str = "THETA_PYTHON_PKCS11";

/// Key pairs of the pool, which the program finds again; what they sign is verified by OpenSSL.
#[test]
fn programs_in_python_make_keys_and_sign() {
    let mut group = Group::made_with(&["--keys", "zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256"]);
    group.file("rsa.pem", SAFE_PRIMES);
    let name = "zone-sh00-pkcs1-sha256-1";
    group.theta(&["keys", "import", "--name", name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    group.start_all();
    ready(&group, "");
    group.file("message", "a message that a program in Python signs");
    let python = env::var_os(INSTALLED).map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let sha256 = &["-digest", "sha256"][..];
    for (kind, digest) in [("p256", sha256), ("p256-digest", sha256), ("ed25519", &[]), ("rsa", sha256)] {
        let mut signs = command(&group, &python);
        signs.arg("-B").arg(PROGRAM).arg(module()).args(["theta-group", kind]);
        succeeds(signs);
        let verify = ["pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", "key.der"];
        let verify = [&verify[..], &["-in", "message", "-sigfile", "signature"], digest].concat();
        assert!(openssl(group.path(), &verify).contains("Verified Successfully"), "{kind}");
    }
    let bindings = std::fs::read_to_string(group.path().join("bindings.toml")).unwrap();
    // Of Ed25519 there was none, and the group has made one.
    for name in ["zone-ecdsa-p256-1@1", "zone-ecdsa-p256-2@1", "zone-frost-ed25519-1@1", "zone-sh00-pkcs1-sha256-1@1"] {
        assert!(bindings.contains(name), "{name}: {bindings}");
    }
}
