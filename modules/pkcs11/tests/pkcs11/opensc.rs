//! `pkcs11-tool` of OpenSC.

use serde_json::json;

use crate::{
    group::{SAFE_PRIMES, configure, host_program, module, openssl, shared, succeeds},
    harness::Group,
    host::Host,
};

/// Runs the program.
fn tool(group: &Group, words: &[&str]) -> String {
    let mut tool = host_program(group, "pkcs11-tool");
    tool.arg("--module").arg(module()).args(words);
    succeeds(tool)
}

#[test]
fn opensc_lists_the_group_and_its_keys() {
    let slots = tool(shared(), &["--list-slots"]);
    assert!(slots.contains("token label        : theta-group") && slots.contains("Slot 0"), "{slots}");
    let objects = tool(shared(), &["--list-objects"]);
    for words in ["EC_POINT 256 bits", "RSA 2048 bits", "label:      rsa512", "label:      live"] {
        assert!(objects.contains(words), "{words} is not in {objects}");
    }
    let mechanisms = tool(shared(), &["--list-mechanisms"]);
    for words in ["ECDSA", "EDDSA", "RSA-PKCS-PSS", "SHA256-RSA-PKCS"] {
        assert!(mechanisms.contains(words), "{words} is not in {mechanisms}");
    }
}

#[test]
fn signatures_of_opensc_verify_with_openssl() {
    let group = shared();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("message"), "signed by pkcs11-tool").unwrap();
    openssl(dir.path(), &["dgst", "-sha256", "-binary", "-out", "digest", "message"]);
    let listed = Host::ready(group).ok(json!({"do": "list"}));
    let id = |key: &str| {
        let found = listed["keys"].as_array().unwrap().iter().find(|found| found["label"] == key).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    for (key, mechanism, input, more) in [
        ("p256", "ECDSA-SHA256", "message", &["--signature-format", "openssl"][..]),
        ("p256", "ECDSA", "digest", &["--signature-format", "openssl"]),
        ("k1", "ECDSA-SHA256", "message", &["--signature-format", "openssl"]),
        ("rsa", "SHA256-RSA-PKCS", "message", &[]),
        ("pss", "SHA256-RSA-PKCS-PSS", "message", &[]),
        ("ed", "EDDSA", "message", &[]),
    ] {
        let (signature, public) = (file("signature"), file("public"));
        let words = ["--sign", "--id", &id(key), "--mechanism", mechanism, "--output-file", &signature];
        tool(group, &[&words[..], &["--input-file", &file(input)], more].concat());
        std::fs::write(&public, group.theta(&["keys", "export", key]).ok().stdout).unwrap();
        let pss: &[&str] = &["-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:32"];
        let options: &[&str] = match key {
            "ed" => &[],
            _ => &["-digest", "sha256"],
        };
        let verify =
            ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "public", "-in", "message", "-sigfile", "signature"];
        let verify = [&verify[..], options, if key == "pss" { pss } else { &[] }].concat();
        assert!(openssl(dir.path(), &verify).contains("Verified Successfully"), "{key} {mechanism}");
    }
}

/// The tool's own test of a module, with keys on curves. It takes for granted that a key of RSA signs what any hash function gives, also
/// SHA-1, which no key of a group does: each has one.
#[test]
fn opensc_finds_no_fault() {
    let mut group = Group::made_with(&["--keys", "ed=frost-ed25519,p256=ecdsa-p256"]);
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "");
    let said = tool(&group, &["--test"]);
    assert!(said.contains("No errors") && said.contains("(p256)"), "{said}");
}

/// Keys that the tool makes, finds by what it has called them, uses, renames and deletes.
#[test]
fn opensc_makes_keys() {
    let mut group = Group::made_with(&["--keys", "zone-ecdsa-p256-1=ecdsa-p256"]);
    group.file("rsa.pem", SAFE_PRIMES);
    let name = "zone-sh00-pkcs1-sha256-1";
    group.theta(&["keys", "import", "--name", name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "pool = \"zone\"\n");
    let mechanisms = tool(&group, &["--list-mechanisms"]);
    assert!(mechanisms.contains("ECDSA-KEY-PAIR-GEN") && mechanisms.contains("RSA-PKCS-KEY-PAIR-GEN"), "{mechanisms}");
    for (kind, id, mechanism) in [
        ("EC:prime256v1", "01", "ECDSA-SHA256"),
        ("EC:secp256k1", "02", "ECDSA-SHA256"),
        ("EC:edwards25519", "03", "EDDSA"),
        ("rsa:2048", "04", "SHA256-RSA-PKCS"),
    ] {
        let made = tool(&group, &["--keypairgen", "--key-type", kind, "--id", id, "--label", kind]);
        assert!(made.contains("Key pair generated") && made.contains(&format!("label:      {kind}")), "{made}");
        let sign = [
            "--sign",
            "--id",
            id,
            "--mechanism",
            mechanism,
            "--input-file",
            "pkcs11.toml",
            "--output-file",
            "signature",
        ];
        tool(&group, &sign);
    }
    tool(&group, &["--set-id", "aa", "--type", "privkey", "--id", "01"]);
    tool(&group, &["--delete-object", "--type", "privkey", "--id", "02"]);
    let objects = tool(&group, &["--list-objects"]);
    assert!(objects.contains("ID:         aa") && objects.contains("local"), "{objects}");
    assert!(!objects.contains("EC:secp256k1"), "{objects}");
}
