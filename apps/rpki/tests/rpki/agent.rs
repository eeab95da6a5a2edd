//! What a node hears, from files.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use theta_rpki::{
    agent::{Agent, Pace},
    attestation::Attestation,
    kept::Kept,
    overrides::Override,
    sources::Sources,
    statements::Statement,
};
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server::Agent as _};
use tonic::Request;

use crate::issuer::{World, keys, pool_text, registry_text, roa, signatures};

pub(crate) async fn ask(agent: &Agent, key: &str, operation: &str, statement: &[u8]) -> Result<(), String> {
    ask_as("tester", agent, key, operation, statement).await
}

/// The same, for this client.
pub(crate) async fn ask_as(
    client: &str,
    agent: &Agent,
    key: &str,
    operation: &str,
    statement: &[u8],
) -> Result<(), String> {
    let (key, operation, statement) = (key.to_owned(), operation.to_owned(), statement.to_vec().into());
    let request = ConsentRequest { client: client.to_owned(), key, operation, statement, ..ConsentRequest::default() };
    let ConsentResponse { consents, reason } = agent.consent(Request::new(request)).await.unwrap().into_inner();
    if consents { Ok(()) } else { Err(reason) }
}

/// With what words it consents, or what it says against it.
pub(crate) async fn words(agent: &Agent, key: &str, statement: &[u8]) -> (bool, String) {
    let (key, statement) = (key.to_owned(), statement.to_vec().into());
    let request = ConsentRequest { key, operation: "sign".to_owned(), statement, ..ConsentRequest::default() };
    let ConsentResponse { consents, reason } = agent.consent(Request::new(request)).await.unwrap().into_inner();
    (consents, reason)
}

pub(crate) fn signed(bytes: &[u8], seeds: &[u8]) -> String {
    let words = |signed: theta_rpki::signatures::Signed| {
        format!("[[signature]]\nkey = \"{}\"\nsignature = \"{}\"\n", signed.key, signed.signature)
    };
    signatures(bytes, seeds).into_iter().map(words).collect()
}

/// A grant of a ROA of AS64496 for 192.0.2.0/24, or its withdrawal, as a member writes and signs it.
pub(crate) fn statement(attestation: &Attestation, number: u64, from: i64, until: Option<i64>, seeds: &[u8]) -> String {
    let (rpki, member, attestation) = ("example".to_owned(), "acme".to_owned(), attestation.clone());
    let bytes = Statement { rpki, member, number, from, until, attestation }.signed_bytes();
    let act = until.map_or("act = \"withdraw\"".to_owned(), |until| format!("act = \"grant\"\nuntil = {until}"));
    let roa = "[roa]\nasn = 64496\nprefixes = [\"192.0.2.0/24\"]\n";
    format!(
        "rpki = \"example\"\nmember = \"acme\"\nnumber = {number}\nfrom = {from}\n{act}\n{roa}{}",
        signed(&bytes, seeds)
    )
}

/// What an agent of a new registry reads, and its memory.
pub(crate) fn sources(folder: &Path) -> (Sources, PathBuf) {
    let [registry, statements, overrides, pool, store, memory] =
        ["registry", "statements", "overrides", "pool", "store", "memory"].map(|name| folder.join(name));
    fs::write(&registry, registry_text()).unwrap();
    fs::write(&pool, pool_text()).unwrap();
    [&statements.join("acme"), &overrides].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    drop(Kept::begin(&memory).unwrap());
    (Sources { registry, statements, overrides: Some(overrides), pool, store }, memory)
}

/// An agent that looks at its files each time.
pub(crate) fn agent(sources: &Sources, memory: &Path) -> Agent {
    let pace = Pace { look: Duration::ZERO, ..Pace::default() };
    Agent::open(sources.clone(), Kept::open(memory).unwrap(), pace).unwrap()
}

#[tokio::test]
async fn a_member_grants_and_withdraws_by_signed_files() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, memory) = sources(folder.path());
    let agent = agent(&sources, &memory);
    let (world, attestation) = (World::new(), roa(64_496, &["192.0.2.0/24"]));
    let (_, asked) = world.object(&attestation, keys().objects[0], 1);
    let file = |name: &str| -> PathBuf { sources.statements.join("acme").join(name) };
    let (from, until) = (world.now - 10, Some(world.now + 86_400));
    let certify = || ask(&agent, "rpki-acme", "sign", &asked[1]);
    let unauthorised = "is authorised by no member's statement";

    assert!(certify().await.unwrap_err().contains(unauthorised));
    fs::write(file("1.toml"), statement(&attestation, 1, from, until, &[1])).unwrap();
    assert!(certify().await.unwrap_err().contains(unauthorised), "one of two keys");
    fs::write(file("2.toml"), statement(&attestation, 1, from, until, &[1, 9])).unwrap();
    assert!(certify().await.unwrap_err().contains(unauthorised), "a key that is not the member's");
    fs::write(file("3.toml"), statement(&attestation, 1, from, until, &[1, 3])).unwrap();
    assert_eq!(certify().await, Ok(()));
    let by = {
        let (rpki, member, attestation) = ("example".to_owned(), "acme".to_owned(), attestation.clone());
        let stated = Statement { rpki, member, number: 1, from, until, attestation };
        format!("by acme's statement 1 (SHA-256 {}): ", hex::encode(Sha256::digest(stated.signed_bytes())))
    };
    let roa = "the ROA of AS64496 for 192.0.2.0/24";
    assert_eq!(words(&agent, "rpki-ee-0", &asked[0]).await, (true, format!("{by}{roa}")));
    assert_eq!(words(&agent, "rpki-acme", &asked[1]).await, (true, format!("{by}the certificate of the key of {roa}")));
    fs::write(file("4.toml"), statement(&attestation, 2, from, None, &[2, 3])).unwrap();
    assert!(certify().await.unwrap_err().contains(unauthorised), "withdrawn");

    let digest = Sha256::digest(&asked[1]);
    assert!(
        ask(&agent, "rpki-acme", "sign-digest", &digest).await.unwrap_err().contains("does not show what is signed")
    );
    fs::write(&sources.registry, "no data").unwrap();
    assert!(certify().await.unwrap_err().contains("registry"));
}

#[tokio::test]
async fn what_was_agreed_to_outlives_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, memory) = sources(folder.path());
    let (world, attestation) = (World::new(), roa(64_496, &["192.0.2.0/24"]));
    let until = Some(world.now + 86_400);
    let text = statement(&attestation, 1, world.now - 10, until, &[1, 2]);
    fs::write(sources.statements.join("acme/1.toml"), text).unwrap();
    let (_, one) = world.object(&attestation, keys().objects[0], 1);
    let (_, other) = world.object(&attestation, keys().objects[1], 1);
    let first = agent(&sources, &memory);
    assert_eq!(ask(&first, "rpki-acme", "sign", &one[1]).await, Ok(()));
    drop(first);
    let agent = agent(&sources, &memory);
    assert!(ask(&agent, "rpki-acme", "sign", &other[1]).await.unwrap_err().contains("serial number 1 was used before"));
    assert_eq!(ask(&agent, "rpki-acme", "sign", &one[1]).await, Ok(()));
}

/// What it says, when it says this: it looks at what all see by itself.
pub(crate) async fn until_said<F: Future<Output = (bool, String)>>(ask: impl Fn() -> F, what: &str) -> (bool, String) {
    let mut last = String::new();
    for _ in 0..1_000 {
        let (consents, said) = ask().await;
        if said.contains(what) {
            return (consents, said);
        }
        last = said;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing is said of {what}, but {last}")
}

#[tokio::test]
async fn operators_override_one_object_together() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, memory) = sources(folder.path());
    let (world, forged) = (World::new(), roa(666, &["192.0.2.0/24"]));
    let (_, asked) = world.object(&forged, keys().objects[0], 1);
    let agent = agent(&sources, &memory);
    let file = |seeds: &[u8], until: i64| {
        let digest: [u8; 32] = Sha256::digest(&asked[1]).into();
        let (key, reason) = ("rpki-acme".to_owned(), "the member's keys are lost".to_owned());
        let one = Override { digest, key, reason, until };
        let head = format!(
            "digest = \"{}\"\nkey = \"{}\"\nreason = \"{}\"\nuntil = {until}\n",
            hex::encode(digest),
            one.key,
            one.reason
        );
        head + &signed(&one.signed_bytes(), seeds)
    };
    let shown = sources.store.join("overrides");
    fs::create_dir_all(&shown).unwrap();
    let folder = sources.overrides.unwrap();
    let objection = |said: Result<(), String>| said.unwrap_err().contains("is authorised by no member's statement");
    // One operator; a member; two, too late.
    for (name, text) in [
        ("1.toml", file(&[11], world.now + 100)),
        ("2.toml", file(&[11, 1], world.now + 100)),
        ("3.toml", file(&[11, 12], world.now - 100)),
    ] {
        fs::write(folder.join(name), &text).unwrap();
        fs::write(shown.join(name), text).unwrap();
        assert!(objection(ask(&agent, "rpki-acme", "sign", &asked[1]).await), "{name}");
    }
    let good = file(&[11, 13], world.now + 100);
    let certify = || words(&agent, "rpki-acme", &asked[1]);
    // Elsewhere it is taken up, and here it is seen.
    fs::write(shown.join("4.toml"), &good).unwrap();
    let (consents, said) = until_said(certify, "OVERRIDE").await;
    let elsewhere = "OVERRIDE elsewhere: operators permit it (the member's keys are lost), and this registry has not taken that up: ";
    assert!(!consents && said.starts_with(elsewhere) && said.contains("is authorised by no member's"), "{said}");
    // Here it is taken up, and elsewhere nobody sees it.
    fs::remove_file(shown.join("4.toml")).unwrap();
    fs::write(folder.join("4.toml"), &good).unwrap();
    let (consents, said) = until_said(certify, "that not all registries see").await;
    assert!(!consents && said.contains("is authorised by no member's"), "{said}");
    fs::write(shown.join("another name.toml"), &good).unwrap();
    let (consents, said) = until_said(certify, "OVERRIDE").await;
    let digest = hex::encode(Sha256::digest(&asked[1]));
    let flagged = format!("OVERRIDE: operators permit the SHA-256 {digest} (the member's keys are lost), though ");
    assert!(consents && said.starts_with(&flagged) && said.contains("is authorised by no member's"), "{said}");
    // What is too long counts for nothing, whoever has signed it.
    let long = format!("{good}#{}", "x".repeat(32 << 10));
    fs::write(shown.join("another name.toml"), &long).unwrap();
    until_said(certify, "that not all registries see").await;
    fs::write(shown.join("another name.toml"), &good).unwrap();
    until_said(certify, "OVERRIDE: ").await;
    // Where the folder cannot be read it might be withdrawn.
    let away = sources.store.join("away");
    fs::rename(&shown, &away).unwrap();
    fs::write(&shown, "no folder").unwrap();
    assert!(certify().await.0, "for a while what was seen last stands");
    until_said(certify, "that not all registries see").await;
    fs::remove_file(&shown).unwrap();
    fs::rename(&away, &shown).unwrap();
    until_said(certify, "OVERRIDE: ").await;
    // This object, and no other one.
    let (_, other) = world.object(&forged, keys().objects[0], 2);
    assert!(objection(ask(&agent, "rpki-acme", "sign", &other[1]).await));
    // It is known of, and still nobody has authorised it.
    let (spares, _) = world.list(1, &[]);
    let said = ask(&agent, "rpki-acme", "sign", &spares).await.unwrap_err();
    assert!(said.contains("it does not revoke 1, certificates of"), "{said}");
    let (revokes, _) = world.list(1, &[1]);
    assert_eq!(ask(&agent, "rpki-acme", "sign", &revokes).await, Ok(()));
}
