//! What operators state in a member's place, as an agent finds it in files.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use theta_rpki::{
    agent::Agent,
    attestation::Attestation,
    sources::Sources,
    statements::{ByOperators, Statement},
};

use crate::{
    agent::{agent, ask, signed, sources, statement, until_said, words},
    issuer::{DAY, World, keys, registry_text, roa},
};

const REASON: &str = "the member's keys are lost";
/// So long at least what was read of a file stands: 29 looks, one in 100 ms at most.
const STANDS: Duration = Duration::from_millis(2_500);
const UNAUTHORISED: &str = "is authorised by no member's statement";

fn by_operators(attestation: &Attestation, number: u64, from: i64, (until, is_grant): (i64, bool)) -> ByOperators {
    let (rpki, member, attestation) = ("example".to_owned(), "acme".to_owned(), attestation.clone());
    let statement = Statement { rpki, member, number, from, until: is_grant.then_some(until), attestation };
    ByOperators { statement, until, reason: REASON.to_owned() }
}

/// The file of a statement about a ROA for one prefix, with these signatures.
fn file(one: &ByOperators, seeds: &[u8]) -> String {
    let Statement { member, number, from, attestation, .. } = &one.statement;
    let Attestation::Roa { asn, prefixes } = attestation else { panic!("a ROA") };
    let prefixes: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
    let act = if one.statement.is_grant() { "grant" } else { "withdraw" };
    format!(
        "rpki = \"example\"\nmember = \"{member}\"\nnumber = {number}\nact = \"{act}\"\nfrom = {from}\nuntil = {}\nreason = \"{}\"\n[roa]\nasn = {asn}\nprefixes = {prefixes:?}\n{}",
        one.until,
        one.reason,
        signed(&one.signed_bytes(), seeds)
    )
}

fn flag(one: &ByOperators) -> String {
    let digest = hex::encode(Sha256::digest(one.signed_bytes()));
    format!("OVERRIDE: SHA-256 {digest} ({REASON}), by operators in acme's place: ")
}

/// A registry with an agent, and a ROA that an issuer asks for.
struct Place {
    folder: tempfile::TempDir,
    sources: Sources,
    agent: Agent,
    world: World,
    attestation: Attestation,
    /// What its own key signs, and its certificate.
    asked: Vec<Vec<u8>>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (sources, memory) = sources(folder.path());
        fs::create_dir_all(sources.store.join("overrides")).unwrap();
        let (world, attestation) = (World::new(), roa(64_496, &["192.0.2.0/24"]));
        let (_, asked) = world.object(&attestation, keys().objects[0], 1);
        let agent = agent(&sources, &memory);
        Self { folder, sources, agent, world, attestation, asked }
    }

    fn own(&self, name: &str) -> std::path::PathBuf {
        self.sources.overrides.as_deref().unwrap().join(name)
    }

    fn shown(&self, name: &str) -> std::path::PathBuf {
        self.sources.store.join("overrides").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        [self.own(name), self.shown(name)].iter().for_each(|path| fs::write(path, text).unwrap());
    }

    async fn until(&self, what: &str) -> (bool, String) {
        until_said(|| words(&self.agent, "rpki-acme", &self.asked[1]), what).await
    }

    /// Waits until it knows of nothing that operators have signed elsewhere.
    async fn await_hidden(&self) {
        for _ in 0..1_000 {
            if !words(&self.agent, "rpki-acme", &self.asked[1]).await.1.contains("OVERRIDE") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it is still seen");
    }

    /// A link that leads nowhere takes the place of a file that all see, which is there at each moment.
    fn harm(&self, name: &str) {
        let link = self.shown("link");
        symlink("nowhere", &link).unwrap();
        fs::rename(link, self.shown(name)).unwrap();
    }

    /// An agent that takes the place of this one.
    fn restart(&mut self) {
        let memory = self.folder.path().join("memory");
        let stand_in = tempfile::tempdir().unwrap();
        let (other, begun) = sources(stand_in.path());
        drop(std::mem::replace(&mut self.agent, agent(&other, &begun)));
        self.agent = await_agent(&self.sources, &memory);
    }
}

/// The thread of the one before lets go of the memory within a look.
fn await_agent(sources: &Sources, memory: &Path) -> Agent {
    for _ in 0..500 {
        if let Ok(kept) = theta_rpki::kept::Kept::open(memory) {
            drop(kept);
            return agent(sources, memory);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the memory stays locked")
}

#[tokio::test]
async fn operators_grant_in_a_members_place_until_it_ends() {
    let mut place = Place::new();
    let (now, attestation) = (place.world.now, place.attestation.clone());
    let grant = by_operators(&attestation, 2, now - 10, (now + DAY, true));
    // Too few; a member's keys; another end than was signed; it has ended.
    let bent =
        file(&grant, &[11, 12]).replace(&format!("until = {}", grant.until), &format!("until = {}", now + 9 * DAY));
    let ended = by_operators(&attestation, 1, now - 100, (now - 10, true));
    let more = by_operators(&roa(64_496, &["198.51.100.0/24"]), 1, now - 10, (now + DAY, true));
    for (name, text) in [
        ("1.toml", file(&grant, &[11])),
        ("2.toml", file(&grant, &[1, 2, 3])),
        ("3.toml", bent),
        ("4.toml", file(&ended, &[11, 12])),
        ("5.toml", file(&more, &[11, 12])),
        ("6.toml", format!("{}#{}", file(&grant, &[11, 12]), "x".repeat(32 << 10))),
    ] {
        place.put(name, &text);
        let said = ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await.unwrap_err();
        assert!(said.contains(UNAUTHORISED) && !said.contains("OVERRIDE"), "{name}: {said}");
    }
    // Also once what all see was looked at again.
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let said = ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await.unwrap_err();
        assert!(said.contains(UNAUTHORISED) && !said.contains("OVERRIDE"), "{said}");
    }

    // Elsewhere it is taken up; then here, where nobody else sees it; then both.
    let good = file(&grant, &[11, 13]);
    fs::write(place.shown("7.toml"), &good).unwrap();
    let (consents, said) = place.until("OVERRIDE elsewhere").await;
    let stated = "operators grant, in acme's place, the ROA of AS64496 for 192.0.2.0/24 (the member's keys are lost)";
    assert!(
        !consents && said.starts_with(&format!("OVERRIDE elsewhere: {stated}, and this registry has not")),
        "{said}"
    );
    fs::remove_file(place.shown("7.toml")).unwrap();
    place.await_hidden().await;
    fs::write(place.own("7.toml"), &good).unwrap();
    let (consents, said) = place.until("not all registries see").await;
    assert!(!consents && said.contains(UNAUTHORISED), "{said}");
    fs::write(place.shown("any name.toml"), &good).unwrap();
    let (consents, said) = place.until("OVERRIDE: ").await;
    let what = "the certificate of the key of the ROA of AS64496 for 192.0.2.0/24";
    assert_eq!((consents, said), (true, format!("{}{what}", flag(&grant))));
    assert!(words(&place.agent, "rpki-ee-0", &place.asked[0]).await.1.starts_with(&flag(&grant)));
    // What follows from it is flagged as well.
    let (list, _) = place.world.list(1, &[]);
    let (consents, said) = words(&place.agent, "rpki-acme", &list).await;
    assert!(consents && said.starts_with(&(flag(&grant) + "the list of")), "{said}");

    // An agent that starts again knows of it from its first decision on.
    place.restart();
    assert_eq!(ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await, Ok(()));
    // Who deletes it at one place withdraws nothing: nothing of the member's is signed until it is back.
    fs::remove_file(place.shown("any name.toml")).unwrap();
    let (consents, said) = place.until("counted and counts no more").await;
    assert!(!consents && said.contains("in acme's place"), "{said}");
    let (list, _) = place.world.list(2, &[1]);
    assert!(ask(&place.agent, "rpki-acme", "sign", &list).await.unwrap_err().contains("counted and counts no more"));
    fs::write(place.shown("any name.toml"), &good).unwrap();
    place.until("OVERRIDE: ").await;
    // Nor does whoever has the member's keys, by whatever number.
    let text = statement(&attestation, 99, now - 10, None, &[1, 2]);
    fs::write(place.sources.statements.join("acme/1.toml"), text).unwrap();
    assert_eq!(ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await, Ok(()));
    // Operators do; what they have granted before does not come back.
    let over = by_operators(&attestation, 3, now - 5, (now + DAY, false));
    place.put("8.toml", &file(&over, &[11, 12]));
    place.until(UNAUTHORISED).await;
}

/// An agent that nobody asks for hours remembers what it has seen: whoever keeps the store shows it for a moment, and has not hidden it by taking it away.
#[tokio::test]
async fn what_is_seen_is_remembered_before_anybody_asks() {
    let place = Place::new();
    let (now, attestation) = (place.world.now, place.attestation.clone());
    let text = statement(&attestation, 1, now - 10, Some(now + DAY), &[1, 2]);
    fs::write(place.sources.statements.join("acme/1.toml"), text).unwrap();
    assert_eq!(ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await, Ok(()));
    let court = by_operators(&attestation, 1, now - 10, (now + DAY, false));
    place.put("1.toml", &file(&court, &[12, 13]));
    let memory = place.folder.path().join("memory");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !fs::read_to_string(&memory).unwrap().contains("*acme") {
        assert!(Instant::now() < deadline, "it is not remembered");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fs::remove_file(place.shown("1.toml")).unwrap();
    // The member's own grant is not back: neither its object, nor the certificate, nor a list without it is signed.
    for _ in 0..50 {
        assert!(!words(&place.agent, "rpki-acme", &place.asked[1]).await.0);
        assert!(!words(&place.agent, "rpki-ee-0", &place.asked[0]).await.0);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (list, _) = place.world.list(1, &[1]);
    until_said(|| words(&place.agent, "rpki-acme", &list), "counted and counts no more").await;
}

/// Operators withdraw what a member grants, until that ends; what the operators' keys have signed counts while they are the operators'.
#[tokio::test]
async fn operators_withdraw_in_a_members_place() {
    let place = Place::new();
    let (now, attestation) = (place.world.now, place.attestation.clone());
    let text = statement(&attestation, 1, now - 10, Some(now + DAY), &[1, 2]);
    fs::write(place.sources.statements.join("acme/1.toml"), text).unwrap();
    assert_eq!(ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await, Ok(()));
    let until = i64::try_from(theta_names::WallTime::now().seconds()).unwrap() + 4;
    let court = by_operators(&attestation, 1, now - 10, (until, false));
    place.put("1.toml", &file(&court, &[12, 13]));
    let (consents, said) = place.until(UNAUTHORISED).await;
    assert!(!consents && !said.contains("OVERRIDE"), "{said}");
    let (list, _) = place.world.list(1, &[1]);
    let (consents, said) = words(&place.agent, "rpki-acme", &list).await;
    assert!(consents && said.starts_with(&(flag(&court) + "the list of")), "{said}");
    // It ends by itself, though its file is there, and the member's grant counts again.
    let (consents, said) = place.until("by acme's statement 1").await;
    assert!(consents && i64::try_from(theta_names::WallTime::now().seconds()).unwrap() >= until, "{said}");
    // Other operators have not signed it.
    let again = by_operators(&attestation, 2, now - 10, (now + DAY, false));
    place.put("2.toml", &file(&again, &[11, 12]));
    place.until(UNAUTHORISED).await;
    let data = registry_text();
    let [old, new] = [12, 14].map(|seed| crate::issuer::signatures(b"", &[seed]).remove(0).key);
    fs::write(&place.sources.registry, data.replace(&old, &new) + "\n").unwrap();
    let (list, _) = place.world.list(2, &[1]);
    until_said(|| words(&place.agent, "rpki-acme", &list), "counted and counts no more").await;
}

/// Whoever keeps the store has a file that all see become one that nobody can read: for a while nothing changes, and then what operators grant is neither granted nor
/// withdrawn.
#[tokio::test]
async fn a_grant_whose_file_cannot_be_read_does_not_go() {
    let place = Place::new();
    let now = place.world.now;
    let good = file(&by_operators(&place.attestation, 2, now - 10, (now + DAY, true)), &[11, 13]);
    place.put("1.toml", &good);
    place.until("OVERRIDE: ").await;
    place.harm("1.toml");
    let harmed = Instant::now();
    loop {
        let (consents, said) = words(&place.agent, "rpki-acme", &place.asked[1]).await;
        if harmed.elapsed() >= STANDS {
            break;
        }
        assert!(consents && said.contains("OVERRIDE: "), "{said}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (consents, _) = place.until("counted and counts no more").await;
    assert!(!consents);
    let (list, _) = place.world.list(1, &[1]);
    assert!(ask(&place.agent, "rpki-acme", "sign", &list).await.unwrap_err().contains("counted and counts no more"));
    fs::remove_file(place.shown("1.toml")).unwrap();
    fs::write(place.shown("1.toml"), &good).unwrap();
    assert!(place.until("OVERRIDE: ").await.0);
}

/// The same of what operators withdraw: the member's own grant does not come back, neither at once nor later.
#[tokio::test]
async fn a_withdrawal_whose_file_cannot_be_read_brings_nothing_back() {
    let place = Place::new();
    let (now, attestation) = (place.world.now, place.attestation.clone());
    let text = statement(&attestation, 1, now - 10, Some(now + DAY), &[1, 2]);
    fs::write(place.sources.statements.join("acme/1.toml"), text).unwrap();
    assert_eq!(ask(&place.agent, "rpki-acme", "sign", &place.asked[1]).await, Ok(()));
    place.put("1.toml", &file(&by_operators(&attestation, 1, now - 10, (now + DAY, false)), &[12, 13]));
    place.until(UNAUTHORISED).await;
    place.harm("1.toml");
    let harmed = Instant::now();
    loop {
        let (consents, said) = words(&place.agent, "rpki-acme", &place.asked[1]).await;
        assert!(!consents, "{said}");
        if said.contains("counted and counts no more") {
            assert!(harmed.elapsed() >= STANDS, "not at the first looks");
            break;
        }
        assert!(said.contains(UNAUTHORISED) && harmed.elapsed() < Duration::from_secs(60), "{said}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Two members hold the same addresses, and operators state the same in the place of either: what is stated of one of them explains nothing about the other one's object.
#[tokio::test]
async fn a_refusal_is_explained_by_what_is_stated_of_its_own_member() {
    let place = Place::new();
    let key = crate::issuer::signatures(b"", &[4]).remove(0).key;
    let other = format!("[[member]]\nhandle = \"else\"\nv4 = [\"192.0.2.0/24\"]\nkeys = [\"{key}\"]\n\n[operators]");
    fs::write(&place.sources.registry, registry_text().replace("[operators]", &other)).unwrap();
    let now = place.world.now;
    let own = by_operators(&place.attestation, 1, now - 10, (now + DAY, true));
    let mut others = own.clone();
    others.statement.member = "else".to_owned();
    // Before the other one, in the order of files.
    fs::write(place.shown("1.toml"), file(&others, &[11, 12])).unwrap();
    fs::write(place.shown("2.toml"), file(&own, &[11, 12])).unwrap();
    let (consents, said) = place.until("OVERRIDE elsewhere").await;
    assert!(!consents && said.contains("in acme's place") && !said.contains("in else's place"), "{said}");
    fs::remove_file(place.shown("2.toml")).unwrap();
    place.await_hidden().await;
}
