//! Five registries run an RPKI together: nodes, agents, issuers and a publisher as processes, members' signed statements as files. `rpki-client` judges
//! what comes out, from the trust anchor's locator to validated payloads, and so does Routinator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::zombie_processes,
    reason = "the helpers of tests are test code, too"
)]

mod clock;
mod forgery;
#[path = "../cli/harness.rs"]
#[allow(dead_code, reason = "the tests of the command line use the rest")]
mod harness;
mod kinds;
mod operators;
mod overrides;
mod processes;
mod registries;
mod renewal;
mod routinator;
#[path = "../cli/run.rs"]
mod run;

use self::registries::{Registries, origins};

/// Another relying party, which gets everything over TLS by RRDP, comes to the same, from a first grant to a withdrawal.
#[test]
fn routinator_validates_the_same_over_tls() {
    let registries = Registries::new();
    let mut stated = Vec::new();
    for (file, network, prefix) in [("1.toml", 64_496, "192.0.2.0/24"), ("2.toml", 64_500, "192.0.2.0/25")] {
        registries.grant(file, &format!("AS{network}"), prefix);
        stated.push((network, prefix));
        registries.issue("registry.toml", "statements", "issued").ok();
        registries.publish().ok();
        assert_eq!(registries.routinated(), origins(&stated));
    }
    assert_eq!(registries.validated(), origins(&stated));
    registries.withdraw("3.toml", "AS64496", "192.0.2.0/24");
    registries.issue("registry.toml", "statements", "issued").ok();
    registries.publish().ok();
    assert_eq!(registries.routinated(), origins(&stated[1..]));
}

/// A relying party takes the ASPA that a member has stated, the next one in its place, and none when that is withdrawn.
#[test]
fn routinator_validates_which_providers_a_member_has_stated() {
    let registries = Registries::new();
    let known = |providers: &[&str]| (String::from("AS64496"), providers.iter().map(ToString::to_string).collect());
    let published = || {
        registries.issue("registry.toml", "statements", "issued").ok();
        registries.publish().ok();
        registries.providers()
    };
    assert_eq!(published(), []);
    registries.grant_providers("1.toml", "AS64496", "AS64497");
    assert_eq!(published(), [known(&["AS64497"])]);
    registries.grant_providers("2.toml", "AS64496", "AS64498 --provider AS64499");
    assert_eq!(published(), [known(&["AS64498", "AS64499"])]);
    registries.put_statement("withdraw --aspa AS64496 --out statements/acme/3.toml");
    registries.wait();
    assert_eq!(published(), []);
}

/// What a member states is published, by any issuer and while two registries are away; what a member has not stated is not, and does not go either.
#[test]
fn no_registry_alone_forges_or_withdraws_a_route_origin() {
    let mut registries = Registries::new();
    registries.grant("1.toml", "AS64496", "192.0.2.0/24");
    let said = registries.issue("registry.toml", "statements", "issued").ok();
    assert!(said.contains("2 new certificates of authorities, 1 new objects, 2 authorities published"), "{said}");
    registries.publish().ok();
    let first = origins(&[(64_496, "192.0.2.0/24")]);
    assert_eq!(registries.validated(), first);

    // One registry would have it gone: to its issuer nobody has ever stated anything.
    std::fs::create_dir_all(registries.path().join("nothing/acme")).unwrap();
    let state = std::fs::read(registries.path().join("issued")).unwrap();
    let mut state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    assert!(!state["counted"].as_object().unwrap().is_empty());
    state["counted"] = serde_json::json!({});
    std::fs::write(registries.path().join("issued-otherwise"), state.to_string()).unwrap();
    let said = registries.issue("registry.toml", "nothing", "issued-otherwise").fails();
    assert!(said.contains("the ROA of AS64496 for 192.0.2.0/24 is missing, and acme has not withdrawn it"), "{said}");
    // Or another network in its place: to its issuer the key of the member is another.
    registries.forge("AS666", "192.0.2.0/24");
    let said = registries.issue("forged.toml", "forged", "issued-otherwise").fails();
    assert!(said.contains("is authorised by no member's statement that counts now"), "{said}");
    registries.publish().ok();
    assert_eq!(registries.validated(), first, "what was published stays");
    let refused = registries.refused(2);
    assert!(refused.contains("agent rpki refuses it") && refused.contains("rpki-"), "{refused}");

    // Two registries are away, and the member grants another one.
    registries.kill(4);
    registries.kill(5);
    registries.grant("2.toml", "AS64500", "192.0.2.0/25");
    registries.issue("registry.toml", "statements", "issued").ok();
    registries.publish().ok();
    let both = origins(&[(64_496, "192.0.2.0/24"), (64_500, "192.0.2.0/25")]);
    assert_eq!(registries.validated(), both);

    // The member withdraws the first. Those that were away are back, and have seen nothing of what was stated and signed meanwhile; now two others are away,
    // so nothing is signed without them.
    registries.withdraw("3.toml", "AS64496", "192.0.2.0/24");
    registries.restart(4);
    registries.restart(5);
    registries.kill(1);
    registries.kill(2);
    registries.issue("registry.toml", "statements", "issued").ok();
    registries.publish().ok();
    assert_eq!(registries.validated(), origins(&[(64_500, "192.0.2.0/25")]));
}

/// Where a member wants that two of its keys sign, nothing comes of one.
#[test]
fn two_of_three_of_a_members_keys_consent() {
    let registries = Registries::with_member(["ann.key", "bob.key", "eve.key"], 2);
    registries.grant("1.toml", "AS64496", "192.0.2.0/24");
    let said = registries.issue("registry.toml", "statements", "issued").ok();
    assert!(said.contains(" 0 new objects, 2 authorities published"), "{said}");
    registries.publish().ok();
    assert_eq!(registries.validated(), origins(&[]));
    registries.sign_statement("bob.key", "1.toml");
    let said = registries.issue("registry.toml", "statements", "issued").ok();
    assert!(said.contains(" 1 new objects"), "{said}");
    registries.publish().ok();
    assert_eq!(registries.validated(), origins(&[(64_496, "192.0.2.0/24")]));
    let record = registries.record(2);
    assert!(record.contains("agent rpki consents: by acme's statement"), "{record}");
}
