//! `theta pkcs11 config` and `theta pkcs11 check`, as people use them.

use std::fs;

use crate::{
    group::{module, shared, with_keys},
    harness::{EXE, Group},
    run::Run,
};

fn check(group: &Group, variable: (&str, &str), words: &[&str]) -> Run {
    let mut command = crate::group::command(group, EXE);
    command.env_remove("THETA_PKCS11_CONFIG").env(variable.0, variable.1);
    command.args(["pkcs11", "check", "--module"]).arg(module()).args(words);
    command.output().unwrap().into()
}

#[test]
fn what_config_prints_is_a_configuration() {
    let group = shared();
    let module = module();
    let module = module.to_str().unwrap();
    let words = ["pkcs11", "config", "--client", "host.client", "--module", module, "--label", "the token"];
    let text = group.theta(&words).ok().text();
    for host in [
        "pkcs11-tool",
        "pkcs11-provider",
        "ssh -I",
        "keystore:",
        "pkcs11-uri",
        "dnssec-keyfromlabel",
        "[[signers]]",
        "p11tool",
    ] {
        assert!(text.contains(host), "{host} is not in {text}");
    }
    // All of it is the module's file, as it was printed.
    let file = group.path().join("printed.toml");
    fs::write(&file, &text).unwrap();
    let seen = check(group, ("THETA_PKCS11_CONFIG", file.to_str().unwrap()), &[]).ok().text();
    assert!(seen.contains("token the token (serial ") && seen.contains("has 7 keys that sign"), "{seen}");

    assert!(text.contains("# For programs that make their own keys: theta pkcs11 config --pool NAME"), "{text}");
    let pooled = group.theta(&[&words[..], &["--pool", "zone"]].concat()).ok().text();
    assert!(pooled.contains("\npool = \"zone\"\nbindings = \"bindings.toml\"\n"), "{pooled}");
    fs::write(&file, &pooled).unwrap();
    assert!(check(group, ("THETA_PKCS11_CONFIG", file.to_str().unwrap()), &[]).ok().text().contains("has 7 keys"));
    group.theta(&[&words[..], &["--pool", "Zone"]].concat()).fails(2, &["is no pool"]);

    // A label is what the module shows, and a part of URIs as nothing else.
    assert!(text.contains("'pkcs11:token=the%20token;object=KEY;type=private'"), "{text}");
    let long = "x".repeat(40);
    let labelled = ["pkcs11", "config", "--client", "host.client", "--module", module, "--label", &long];
    group.theta(&labelled).fails(2, &["40 bytes"]);

    // Whoever says what will be signed may be away.
    let ahead = group.theta(&[&words[..], &["--look-ahead", "ahead.sock"]].concat()).ok().text();
    assert!(ahead.contains("\nlook_ahead = \"ahead.sock\"\n"), "{ahead}");
    fs::write(&file, &ahead).unwrap();
    let seen = check(group, ("THETA_PKCS11_CONFIG", file.to_str().unwrap()), &[]).ok().text();
    let socket = group.path().join("ahead.sock");
    assert!(seen.contains(&format!("look-ahead: nobody answers at {}: ", socket.display())), "{seen}");

    let one = group.theta(&[&words[..], &["openssl"]].concat()).ok().text();
    assert!(one.starts_with("OpenSSL 3") && !one.contains("keystore:") && one.contains(module), "{one}");
    let pinned = group.theta(&[&words[..], &["--pin", "passphrase", "--json"]].concat()).ok().json();
    assert!(pinned["config"].as_str().unwrap().contains("pin = \"passphrase\""), "{pinned}");
    assert!(pinned["hosts"][1]["text"].as_str().unwrap().contains(";pin-source="), "{pinned}");
    group.theta(&["pkcs11", "config", "--client", "absent.client", "--module", module]).fails(2, &["absent.client"]);
    group.theta(&["pkcs11", "config", "--module", "/absent.so"]).fails(2, &["/absent.so"]);
}

#[test]
fn check_plays_a_host() {
    let mut group = with_keys();
    let client = ("THETA_CLIENT", "host.client");
    let seen = check(&group, client, &[]).ok().text();
    assert!(seen.contains("can be loaded") && seen.contains("p256: CKM_ECDSA, CKM_ECDSA_SHA256"), "{seen}");
    let all = check(&group, client, &["--all", "--json"]).ok().json();
    let keys = all["tokens"][0]["keys"].as_array().unwrap();
    assert!(keys.len() == 7 && keys.iter().all(|key| key["signed_ms"].as_f64().unwrap() > 0.0), "{all}");
    let one = check(&group, client, &["--key", "ed"]).ok().text();
    assert_eq!(one.matches("signed and verified").count(), 1, "{one}");
    check(&group, client, &["--key", "none"]).fails(2, &["no token has a key none"]);

    check(&group, ("THETA_PKCS11_CONFIG", "absent.toml"), &[]).fails(2, &["no good configuration"]);
    check(&group, ("THETA_CLIENT", "absent.client"), &[]).fails(1, &["shows no token"]);
    let mut no_module = crate::group::command(&group, EXE);
    no_module.args(["pkcs11", "check", "--module", "rsa.pem"]);
    Run::from(no_module.output().unwrap()).fails(1, &["rsa.pem is no module"]);
    group.file("pin", "1234");
    check(&group, client, &["--pin-file", "pin"]).fails(2, &["chmod 600"]);
    (2..=4).for_each(|node| group.kill(node));
    check(&group, client, &["--key", "ed"]).fails(3, &["too few nodes answer"]);
}
