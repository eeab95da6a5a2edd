//! What a threshold of registries permits though no registry's data do: on record at each of them, and seen by all.

use std::fs;

use theta_rpki::attestation::Attestation;

use crate::{
    forgery::{Forger, Refused},
    registries::Registries,
};

const REASON: &str = "a court has decided so";

/// Two operators sign an override of what was refused; the file.
fn signed(registries: &Registries, refused: &Refused) -> String {
    let Refused { key, digest, .. } = refused;
    let file = format!("{}.toml", &digest[..8]);
    let reason = REASON.replace(' ', "-");
    let words = format!("override new --registry registry.toml --digest {digest} --node-key {key} --reason {reason}");
    registries.rpki(&format!("{words} --key one.op --out {file}"));
    registries.rpki(&format!("override sign --registry registry.toml --key two.op {file} --yes"));
    file
}

/// A registry takes an override up.
fn take_up(registries: &Registries, node: u16, file: &str) {
    fs::copy(registries.path().join(file), registries.folder(node).join("overrides").join(file)).unwrap();
}

#[test]
fn three_registries_override_and_all_see_it() {
    let registries = Registries::new();
    registries.grant("1.toml", "AS64496", "192.0.2.0/24");
    registries.issue("registry.toml", "statements", "issued").ok();
    // Nobody has stated that.
    let roa = Attestation::roa(666, ["192.0.2.0/24".parse().unwrap()].into()).unwrap();
    let forger = Forger::new(&registries, "rpki-ee-9");
    let shown = registries.path().join("store/overrides");
    fs::create_dir(&shown).unwrap();
    let reason = REASON.replace(' ', "-");
    // First what its own key signs, then its certificate.
    for what in ["rpki-ee-9", "rpki-acme"] {
        let refused = forger.object(&roa).unwrap_err();
        assert_eq!(refused.key, what);
        assert!(refused.words.contains("authorised by no member's statement"), "{}", refused.words);
        let file = signed(&registries, &refused);
        // Three have taken it up, where the others cannot see it.
        (1..=3).for_each(|node| take_up(&registries, node, &file));
        registries.wait();
        let said = forger.object(&roa).unwrap_err().words;
        assert!(said.contains("an override permits it that not all registries see"), "{said}");
        // All see it, and two have taken it up.
        fs::remove_file(registries.folder(3).join("overrides").join(&file)).unwrap();
        fs::copy(registries.path().join(&file), shown.join(&file)).unwrap();
        registries.wait();
        let said = forger.object(&roa).unwrap_err();
        assert_eq!(said.digest, refused.digest);
        assert!(said.words.contains("OVERRIDE elsewhere"), "{}", said.words);
        take_up(&registries, 3, &file);
        registries.wait();
        let made = forger.object(&roa).map_err(|next| (next.key, next.digest));
        assert_eq!(made.is_ok(), what == "rpki-acme", "the one before the last is not the last");
        assert_ne!(made.err().map(|(_, digest)| digest), Some(refused.digest.clone()));
        check_seen(&registries, &refused, &reason);
    }
}

/// Whether the records of those who have overridden say so, and everybody has been told.
fn check_seen(registries: &Registries, refused: &Refused, reason: &str) {
    let flagged = format!("OVERRIDE: operators permit the SHA-256 {} ({reason}), though", refused.digest);
    for node in 1..=5 {
        let record = registries.record(node);
        assert_eq!(record.contains(&flagged), node <= 3, "node {node}: {record}");
        let told =
            format!("OVERRIDE: operators permit {} to sign the bytes with the SHA-256 {}", refused.key, refused.digest);
        let log = registries.agent_log(node);
        assert!(log.lines().any(|line| line.contains(&told) && line.contains(reason)), "node {node}: {log}");
    }
    let elsewhere =
        format!("OVERRIDE elsewhere: operators permit it ({reason}), and this registry has not taken that up");
    (4..=5).for_each(|node| registries.await_refusal(node, &refused.key, &elsewhere));
}
