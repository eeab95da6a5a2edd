//! What PINs are: nothing, a client's token, a passphrase.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use serde_json::{Value, json};

use crate::{
    command::check,
    group::{configure, log, until, with_keys},
    harness::Group,
    host::Host,
};

const LOGIN_REQUIRED: u64 = 4;
const PIN_INCORRECT: u64 = 0xa0;

fn sign(key: &str) -> Value {
    json!({"do": "sign", "key": key, "mechanism": "eddsa", "data": "01"})
}

fn login(pin: &str) -> Value {
    json!({"do": "login", "pin": pin})
}

fn keys(host: &mut Host) -> usize {
    host.ok(json!({"do": "list"}))["keys"].as_array().unwrap().len()
}

/// The file of a secret, which its owner alone can read.
fn secret(group: &Group, name: &str, text: &str) {
    group.file(name, text);
    fs::set_permissions(group.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
}

/// What hosts do with a token that wants this PIN.
fn takes_this_pin_alone(group: &Group, pin: &str, wrong: &[&str]) {
    let mut host = Host::ready(group);
    assert_ne!(host.ok(json!({"do": "token"}))["flags"].as_u64().unwrap() & LOGIN_REQUIRED, 0);
    assert_eq!(keys(&mut host), 0, "nothing is seen before a login");
    for wrong in wrong {
        host.fails(PIN_INCORRECT, login(wrong));
    }
    host.fails(0x101, json!({"do": "logout"}));
    host.ok(login(pin));
    host.fails(0x100, login(pin));
    host.ok(sign("ed"));
    assert_eq!(keys(&mut host), 14);
    assert_eq!(host.ok(json!({"do": "attribute", "key": "ed", "name": "private"}))["value"], "01");
    host.ok(json!({"do": "logout"}));
    assert_eq!(keys(&mut host), 0);
    host.ok(login(pin));
    host.ok(sign("ed"));
    let said = log(group);
    assert!(!said.contains(pin) && wrong.iter().all(|wrong| wrong.is_empty() || !said.contains(wrong)), "{said}");
}

#[test]
fn without_a_pin_any_is_taken() {
    let mut host = Host::ready(crate::group::shared());
    assert_eq!(host.ok(json!({"do": "token"}))["flags"].as_u64().unwrap() & LOGIN_REQUIRED, 0);
    host.ok(sign("ed"));
    host.ok(login("1234"));
    host.ok(sign("ed"));
}

#[test]
fn a_token_is_a_pin() {
    let group = with_keys();
    let new = |name: &str| {
        let policy = group.theta(&["token", "new", "--name", name]).ok().text();
        (fs::read_to_string(group.path().join(format!("{name}.token"))).unwrap().trim().to_owned(), policy)
    };
    let ((pin, client), (stranger, _)) = (new("host"), new("stranger"));
    let rule = "\n[[rule]]\nname = \"host-signs\"\neffect = \"allow\"\nclients = [\"host\"]\nkeys = [\"*\"]\n\
                operations = [\"sign\", \"keys.list\"]\n";
    for node in group.numbers() {
        group.append(node, "policy.toml", &format!("\n{client}{rule}"));
    }
    // Only the token says who asks: the client has no certificate.
    let text = fs::read_to_string(group.path().join("host.client")).unwrap();
    let (before, rest) = text.split_once("certificate = \"\"\"").unwrap();
    secret(&group, "host.client", &[before, &rest[rest.find("[group]").unwrap()..]].concat());
    configure(&group, "pin = \"token\"\n");
    until("the nodes know the token", Duration::from_secs(30), || Host::ready(&group).ask(login(&pin))["rv"] == 0);
    takes_this_pin_alone(&group, &pin, &["", "1234", &stranger]);
}

#[test]
fn a_passphrase_is_a_pin() {
    let group = with_keys();
    let weak = ["client", "lock", "host.client", "--passphrase-file", "weak", "-o", "locked.client"];
    secret(&group, "weak", "short\n");
    group.theta(&weak).fails(2, &["weak: the passphrase is too easy to guess"]);
    secret(&group, "passphrase", "correct horse battery\n");
    let lock = ["client", "lock", "host.client", "--passphrase-file", "passphrase", "-o", "locked.client"];
    group.theta(&lock).ok();
    let locked = group.theta(&["sign", "passphrase", "--key", "ed", "--client", "locked.client", "-o", "none"]);
    locked.fails(2, &["a passphrase locks its private keys", "theta client unlock"]);
    let unlock = ["client", "unlock", "locked.client", "--passphrase-file", "passphrase", "-o", "unlocked.client"];
    group.theta(&unlock).ok();
    group.theta(&["sign", "passphrase", "--key", "ed", "--client", "unlocked.client", "-o", "some"]).ok();
    fs::rename(group.path().join("locked.client"), group.path().join("host.client")).unwrap();
    configure(&group, "pin = \"passphrase\"\n");
    takes_this_pin_alone(&group, "correct horse battery", &["", "correct horse"]);
    // The command that plays a host has the PIN from a file.
    let config = group.path().join("pkcs11.toml");
    let check = |words: &[&str]| check(&group, ("THETA_PKCS11_CONFIG", config.to_str().unwrap()), words);
    let seen = check(&["--pin-file", "passphrase", "--key", "ed"]).ok().text();
    assert!(seen.contains("has 7 keys that sign") && seen.contains("ed: CKM_EDDSA; signed and verified in "), "{seen}");
    check(&["--key", "ed"]).fails(2, &["wants a PIN: name with --pin-file"]);
    check(&["--pin-file", "weak"]).fails(2, &["cannot log in: the PIN is neither"]);
    // Keys are made after a login alone, also those that the group makes for it.
    configure(&group, "pin = \"passphrase\"\npool = \"zone\"\n");
    let mut host = Host::ready(&group);
    let make = json!({"do": "generate", "mechanism": "0x1055", "curve": "06032b6570", "id": "01", "label": "made"});
    host.fails(0x101, make.clone());
    host.ok(login("correct horse battery"));
    host.ok(make);
    host.ok(sign("made"));
    host.ok(json!({"do": "logout"}));
    assert_eq!(keys(&mut host), 0);
}

/// A key is destroyed only where the configuration says that hosts may, and the group decides it.
#[test]
fn a_host_destroys_a_key_if_it_may() {
    let group = with_keys();
    let mut host = Host::ready(&group);
    host.fails(0x1b, json!({"do": "destroy", "key": "live"}));
    host.ok(sign("live"));
    configure(&group, "destroy = true\n");
    let mut host = Host::ready(&group);
    host.ok(json!({"do": "destroy", "key": "live"}));
    until("the key is gone", Duration::from_secs(20), || keys(&mut host) == 12);
    let listed = group.theta(&["keys", "list", "--live", "--json"]).ok().text();
    assert!(listed.contains("destroyed"), "{listed}");
    host.ok(sign("ed"));
}

/// Where the PIN is a client's token, keys are destroyed as whoever has it, and not as the client file.
#[test]
fn with_a_token_nobody_acts_as_the_file() {
    let group = with_keys();
    let policy = group.theta(&["token", "new", "--name", "host"]).ok().text();
    let pin = fs::read_to_string(group.path().join("host.token")).unwrap().trim().to_owned();
    let rule = "\n[[rule]]\nname = \"host-signs\"\neffect = \"allow\"\nclients = [\"host\"]\nkeys = [\"*\"]\n\
                operations = [\"sign\", \"keys.list\"]\n";
    for node in group.numbers() {
        group.append(node, "policy.toml", &format!("\n{policy}{rule}"));
    }
    // The file's own client may destroy keys.
    configure(&group, "pin = \"token\"\ndestroy = true\n");
    until("the nodes know the token", Duration::from_secs(30), || Host::ready(&group).ask(login(&pin))["rv"] == 0);
    let mut host = Host::ready(&group);
    host.ok(login(&pin));
    let told = host.ask(json!({"do": "destroy", "key": "live"}));
    assert_ne!(told["rv"], 0, "{told}");
    group.theta(&["sign", "-o", "signature", "pkcs11.toml", "--key", "live"]).ok();
}
