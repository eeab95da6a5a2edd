//! What nodes signed with ECDSA, verified by software that is not ours.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, EcdsaVerificationAlgorithm, UnparsedPublicKey,
};
use sha2::Digest as _;

use crate::harness::Group;
use crate::keys::run;

/// A verifier with Go's own library, built once. `None` where there is no Go and whoever runs the tests has said that it knows.
fn go() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if env::var_os("THETA_NO_GO").is_some() {
            return None;
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify-ecdsa");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/verify-ecdsa");
        let built = Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(source).status();
        let built = built.expect("go is installed; set THETA_NO_GO to go without what is tested with it");
        assert!(built.success(), "the verifier in Go is built");
        Some(program)
    };
    PROGRAM.get_or_init(build).as_deref()
}

/// A verifier with ring, built once. It is a package of its own, since this workspace has no ring.
fn ring() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify-ring");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/verify-ring/Cargo.toml");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&target);
        assert!(cargo.status().expect("cargo runs").success(), "the verifier with ring is built");
        target.join("debug/verify-ring")
    };
    PROGRAM.get_or_init(build)
}

/// Whether a verifier takes a signature: it is given the files of the public key, of the signature and of the message.
fn takes(group: &Group, program: &Path, files: [&str; 3]) -> bool {
    let output = Command::new(program).args(files).current_dir(group.path()).output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

/// Whether ring takes a signature, in DER or not, by the key in `public.der`.
fn ring_takes(group: &Group, signature: &str, message: &str) -> bool {
    takes(group, ring(), ["public.der", signature, message])
}

/// Whether Go's crypto/ecdsa takes a signature.
fn go_takes(group: &Group, program: &Path, message: &str) -> bool {
    takes(group, program, ["public.pem", "signature.der", message])
}

fn openssl_takes(group: &Group, message: &str) -> bool {
    let words = ["dgst", "-sha256", "-verify", "public.pem", "-signature", "signature.der", message];
    let output = Command::new("openssl").args(words).current_dir(group.path()).output();
    output.expect("openssl is installed").status.success()
}

fn aws_lc_takes(algorithm: &'static EcdsaVerificationAlgorithm, key: &[u8], message: &str, signature: &[u8]) -> bool {
    UnparsedPublicKey::new(algorithm, key).verify(message.as_bytes(), signature).is_ok()
}

/// Checks that all verifiers that know the curve take the signature of a message that some nodes have just made, and none of them the signature of
/// another one.
pub(crate) fn all_take(group: &Group, key: &str, suite: &str, message: &str) {
    group.file("message", message);
    group.file("other", format!("not {message}"));
    group.theta(&["sign", "message", "--key", key, "-o", "signature.der", "--format", "der"]).ok();
    group.theta(&["verify", "message", "signature.der", "--key", key]).ok();
    let pem = group.theta(&["keys", "export", key]).ok().stdout;
    group.file("public.pem", pem);
    assert!(openssl_takes(group, "message") && !openssl_takes(group, "other"), "{message}");
    let der = group.read("signature.der");
    let raw = theta_schemes::signatures::ecdsa::from_der(&der).unwrap();
    if suite == "ecdsa-p256" {
        if let Some(program) = go() {
            assert!(go_takes(group, program, "message") && !go_takes(group, program, "other"), "{message}");
        }
        let uncompressed = run(group.path(), "openssl pkey -pubin -in public.pem -outform DER");
        // A key's bytes are the last of its encoding.
        let point = &uncompressed[uncompressed.len() - 65..];
        assert!(aws_lc_takes(&ECDSA_P256_SHA256_ASN1, point, message, &der));
        assert!(aws_lc_takes(&ECDSA_P256_SHA256_FIXED, point, message, &raw));
        assert!(!aws_lc_takes(&ECDSA_P256_SHA256_ASN1, point, "something else", &der));
        group.file("public.der", &uncompressed);
        group.file("signature.raw", raw);
        assert!(
            ring_takes(group, "signature.der", "message") && !ring_takes(group, "signature.der", "other"),
            "{message}"
        );
        assert!(
            ring_takes(group, "signature.raw", "message") && !ring_takes(group, "signature.raw", "other"),
            "{message}"
        );
    } else {
        let hex = group.theta(&["keys", "export", key, "--format", "hex"]).ok().text();
        let public = secp256k1::PublicKey::from_slice(&hex::decode(hex.trim()).unwrap()).unwrap();
        let signature = secp256k1::ecdsa::Signature::from_compact(&raw).unwrap();
        let takes = |text: &str| {
            let digest = <[u8; 32]>::try_from(sha2::Sha256::digest(text).as_slice()).unwrap();
            secp256k1::ecdsa::verify(&signature, secp256k1::Message::from_digest(digest), &public).is_ok()
        };
        assert!(takes(message) && !takes("something else"));
    }
}
