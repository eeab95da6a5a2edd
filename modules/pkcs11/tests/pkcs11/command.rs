//! `theta pkcs11 config`, `theta pkcs11 check` and `theta pkcs11 watch`, as people use them.

use std::{fs, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::{
    group::{module, shared, until, with_keys},
    harness::{EXE, Group},
    knot::resume::{Watch, watched},
    run::Run,
};

/// What the command says as a host with this variable.
pub(crate) fn check(group: &Group, variable: (&str, &str), words: &[&str]) -> Run {
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

/// Each host by its name, and each way to say what holders may do and what the PIN is.
#[test]
fn config_prints_what_is_asked_for_alone() {
    let group = shared();
    let module = module().display().to_string();
    let words = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "zone"];
    let config = |more: &[&str]| group.theta(&[&words[..], more].concat());
    for (host, begins, has) in [
        ("opensc", "pkcs11-tool (OpenSC):", "  pkcs11-tool --module "),
        ("openssl", "OpenSSL 3 with pkcs11-provider:", "  pkcs11-module-path = "),
        ("ssh", "ssh, with a key of P-256,", "  ssh-keygen -D "),
        ("knot", "Knot DNS: knot.conf.", "  keystore:"),
        ("bind", "BIND 9.20,", "  key-store \"threshold\" {"),
        ("krill", "Krill: krill.conf.", "  [[signers]]"),
        ("p11kit", "p11-kit, for GnuTLS and others:", "  module: "),
    ] {
        let text = config(&[host]).ok().text();
        assert!(text.starts_with(begins), "{host}: {text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with(has)).count(),
            if host == "opensc" { 2 } else { 1 },
            "{text}"
        );
        assert!(!text.contains("[[token]]") && !text.contains("\n# "), "{host}: {text}");
        assert_eq!(config(&[host, "--json"]).ok().json()["hosts"].as_array().unwrap().len(), 1);
    }
    for (option, line) in [
        (&["--security", "passive"][..], "\nsecurity = \"passive\"\n"),
        (&["--pin", "token"], "\npin = \"token\"\n"),
        (&["--pin", "none"], "\npin = \"none\"\n"),
    ] {
        assert_eq!(config(option).ok().text().matches(line).count(), 1, "{option:?}");
    }
    assert!(!config(&["--security", "active"]).ok().text().contains("\nsecurity"), "it needs no word");
    group.theta(&["pkcs11", "config", "--client", "host.client", "--security", "passive"]).fails(2, &["--pool"]);
    config(&["--pin", "1234"]).fails(2, &["--pin"]);
}

/// The pool is one of two of the configuration that the variable names. The command is killed when its patience ends, fails, and succeeds, while the
/// nodes that were away are back.
#[test]
fn watch_runs_its_command_until_it_succeeds() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    let token = "[[token]]\nclient = \"host.client\"\npool = ";
    group.file("pkcs11.toml", format!("{token}\"a\"\n{token}\"b\"\n"));
    let mut script = Command::new("sh");
    script.args(["-c", "echo run >> runs; case $(wc -l < runs) in 1) exec sleep 600;; 2) exit 3;; esac"]);
    let watch = |more: &[&str]| group.theta(&[&["pkcs11", "watch", "--config", "pkcs11.toml"], more].concat());
    watch(&["--", "true"]).fails(2, &["there are the pools a, b: name one with --pool"]);
    watch(&["--pool", "c", "--", "true"]).fails(2, &["there is no such pool"]);
    watch(&["--pool", "b"]).fails(2, &["COMMAND"]);
    // Where the configuration is, the environment says.
    let options = ["--pool", "b", "--every", "300ms", "--patience", "500ms", "--timeout", "5s", "--json"];
    let running = Watch::start_with(&group, &options, &script);
    (2..=4).for_each(|node| group.kill(node));
    let patience = Duration::from_secs(60);
    let events = |group: &Group| -> Vec<Value> {
        watched(group).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    until("it is seen that too few are there", patience, || {
        events(&group).iter().any(|event| event["event"] == "lost")
    });
    (2..=4).for_each(|node| group.start(node));
    until("the command succeeds", patience, || events(&group).iter().any(|event| event["event"] == "succeeded"));
    drop(running);
    let command = format!("sh -c {}", script.get_args().nth(1).unwrap().to_string_lossy());
    let back = || json!({"event": "back", "command": command});
    let failed = |reason: &str| json!({"event": "failed", "command": command, "reason": reason});
    let (lost, seen): (Vec<Value>, Vec<Value>) = events(&group).into_iter().partition(|event| event["event"] == "lost");
    assert_eq!(lost[0]["shortage"]["takes"], 2, "{lost:?}");
    let succeeded = json!({"event": "succeeded", "command": command});
    let expected = [back(), failed("it was killed after 500ms"), back(), failed("exit status: 3"), back(), succeeded];
    assert_eq!(seen, expected, "{}", watched(&group));
    assert_eq!(String::from_utf8(group.read("runs")).unwrap(), "run\n".repeat(3));
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
