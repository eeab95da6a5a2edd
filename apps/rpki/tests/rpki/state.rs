//! What an agent's files do to what it has counted: files that go, that cannot be read, that are too many; keys that are replaced; and how much it
//! does for those who ask.

use std::{
    fs,
    future::{Future as _, poll_fn},
    io::Write as _,
    path::{Path, PathBuf},
    task::Poll,
    thread,
    time::Duration,
};

use rpki::repository::x509::Time;
use theta_rpki::{
    agent::{Agent, AgentError, Pace},
    attestation::Attestation,
    kept::{Kept, MemoryError},
    sources::{MOST_STATEMENTS, Sources},
};

use crate::{
    agent::{agent, ask, ask_as, sources, statement},
    issuer::{DAY, World, keys, registry_text, roa, signatures, tbs},
};

/// What is said of a ROA that nobody has authorised, and of a grant that counted.
const UNAUTHORISED: &str = "is authorised by no member's statement";
const MISSING: &str = "counted and counts no more";

/// A registry with a member, and what an issuer would have signed for a ROA of that member.
struct Place {
    _folder: tempfile::TempDir,
    sources: Sources,
    memory: PathBuf,
    world: World,
    attestation: Attestation,
    /// The certificate of the ROA's key.
    asked: Vec<u8>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (sources, memory) = sources(folder.path());
        // A certificate with the number 1 was on a manifest.
        let mut known = fs::File::options().append(true).open(&memory).unwrap();
        let (world, attestation) = (World::new(), roa(64_496, &["192.0.2.0/24"]));
        let (file, from) = (attestation.file_name(), world.now);
        writeln!(known, "published acme {:0>40} {file} {from} {}", 1, from + DAY).unwrap();
        let asked = world.object(&attestation, keys().objects[0], 1).1.remove(1);
        Self { _folder: folder, sources, memory, world, attestation, asked }
    }

    fn agent(&self) -> Agent {
        agent(&self.sources, &self.memory)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.sources.statements.join("acme").join(name)
    }

    /// A statement that counts now.
    fn state(&self, name: &str, number: u64, grants: bool, seeds: &[u8]) {
        let (from, until) = (self.world.now - 10, grants.then_some(self.world.now + 86_400));
        fs::write(self.file(name), statement(&self.attestation, number, from, until, seeds)).unwrap();
    }

    /// Puts a fourth key in the place of the member's second one.
    fn replace_a_key(&self) {
        let [old, new] = [2, 4].map(|seed| signatures(b"", &[seed]).remove(0).key);
        // One character more, so that the change is seen on systems with coarse times.
        fs::write(&self.sources.registry, registry_text().replace(&old, &new) + "\n").unwrap();
    }

    async fn certify(&self, agent: &Agent) -> Result<(), String> {
        ask(agent, "rpki-acme", "sign", &self.asked).await
    }

    async fn list(&self, agent: &Agent, number: u64, revoked: &[u64]) -> Result<(), String> {
        ask(agent, "rpki-acme", "sign", &self.world.list(number, revoked).0).await
    }

    /// The certificate of the member's authority, which follows from the registry's data alone.
    async fn anchor(&self, agent: &Agent) -> Result<(), String> {
        let certificate = self.world.authority_certificate(self.world.acme(), 2);
        ask(agent, "rpki-ta", "sign", &tbs(&certificate)).await
    }
}

fn says(said: Result<(), String>, words: &str) {
    let said = said.unwrap_err();
    assert!(said.contains(words), "{said}");
}

/// What a member has withdrawn, with a key that is replaced later.
#[tokio::test]
async fn a_key_that_is_replaced_brings_nothing_back() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 3]);
    assert_eq!(place.certify(&agent).await, Ok(()));
    place.state("2.toml", 2, false, &[2, 3]);
    says(place.certify(&agent).await, UNAUTHORISED);
    // The withdrawal is not signed by two of the member's keys any more; the grant is.
    place.replace_a_key();
    says(place.certify(&agent).await, UNAUTHORISED);
    says(place.list(&agent, 1, &[]).await, "it does not revoke 1");
    drop(agent);
    let agent = place.agent();
    says(place.certify(&agent).await, UNAUTHORISED);
    place.state("3.toml", 3, true, &[1, 4]);
    assert_eq!(place.certify(&agent).await, Ok(()));
}

/// A grant whose signatures do not suffice any more is not withdrawn by that: its member has not said so.
#[tokio::test]
async fn a_key_that_is_replaced_withdraws_nothing() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 2]);
    assert_eq!(place.certify(&agent).await, Ok(()));
    place.replace_a_key();
    says(place.list(&agent, 1, &[1]).await, MISSING);
    says(place.list(&agent, 1, &[]).await, MISSING);
    says(place.certify(&agent).await, MISSING);
    place.state("2.toml", 2, true, &[1, 4]);
    assert_eq!(place.list(&agent, 1, &[]).await, Ok(()));
    assert_eq!(place.certify(&agent).await, Ok(()));
}

/// A member that has lost what it granted takes no part in that: who holds what is the registry's word.
#[tokio::test]
async fn what_a_member_has_lost_is_withdrawn() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 2]);
    assert_eq!(place.certify(&agent).await, Ok(()));
    let without = registry_text().replace("v4 = [\"192.0.2.0/24\"]", "v4 = [\"198.51.100.0/24\"]");
    assert_ne!(without, registry_text());
    fs::write(&place.sources.registry, without).unwrap();
    says(place.list(&agent, 1, &[]).await, "it does not revoke 1");
    assert_eq!(place.list(&agent, 1, &[1]).await, Ok(()));
}

/// Somebody deletes a member's grant at a registry.
#[tokio::test]
async fn a_grant_does_not_go_with_its_file() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 2]);
    assert_eq!(place.certify(&agent).await, Ok(()));
    fs::rename(place.file("1.toml"), place.file("1.gone")).unwrap();
    for revoked in [&[][..], &[1]] {
        says(place.list(&agent, 1, revoked).await, MISSING);
    }
    assert_eq!(place.anchor(&agent).await, Ok(()), "others go on");
    drop(agent);
    let agent = place.agent();
    says(place.certify(&agent).await, MISSING);
    fs::rename(place.file("1.gone"), place.file("1.toml")).unwrap();
    assert_eq!(place.list(&agent, 1, &[]).await, Ok(()));
    // What was withdrawn may go, the withdrawal as well, in whatever order.
    place.state("2.toml", 2, false, &[1, 2]);
    says(place.certify(&agent).await, UNAUTHORISED);
    fs::remove_file(place.file("2.toml")).unwrap();
    says(place.certify(&agent).await, UNAUTHORISED);
    fs::remove_file(place.file("1.toml")).unwrap();
    assert_eq!(place.list(&agent, 2, &[1]).await, Ok(()));
}

/// A statement that cannot be read may be a withdrawal.
#[tokio::test]
async fn a_statement_that_cannot_be_read_is_not_taken_for_none() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 2]);
    assert_eq!(place.certify(&agent).await, Ok(()));
    fs::create_dir(place.file("2.toml")).unwrap();
    says(place.certify(&agent).await, "2.toml");
    says(place.anchor(&agent).await, "2.toml");
    fs::remove_dir(place.file("2.toml")).unwrap();
    assert_eq!(place.certify(&agent).await, Ok(()));
    // One that is no statement is the member's mistake.
    fs::write(place.file("2.toml"), b"\xff\xfe").unwrap();
    assert_eq!(place.certify(&agent).await, Ok(()));
}

#[tokio::test]
async fn what_could_not_be_read_is_read_again_though_no_file_has_changed_since() {
    let place = Place::new();
    let agent = place.agent();
    let overrides = place.sources.overrides.clone().unwrap();
    place.state("1.toml", 1, true, &[1, 2]);
    fs::remove_dir(&overrides).unwrap();
    says(place.certify(&agent).await, "overrides");
    fs::create_dir(&overrides).unwrap();
    assert_eq!(place.certify(&agent).await, Ok(()));
}

#[tokio::test]
async fn statements_of_another_rpki_or_in_another_folder_count_for_nothing() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 2]);
    let text = fs::read_to_string(place.file("1.toml")).unwrap();
    fs::remove_file(place.file("1.toml")).unwrap();
    fs::write(place.sources.statements.join("1.toml"), &text).unwrap();
    says(place.certify(&agent).await, UNAUTHORISED);
    fs::write(place.file("1.toml"), text.replace("rpki = \"example\"", "rpki = \"test\"")).unwrap();
    says(place.certify(&agent).await, UNAUTHORISED);
    // The same member, with the same keys, in a test.
    fs::write(&place.sources.registry, registry_text().replace("name = \"example\"", "name = \"test\"")).unwrap();
    says(place.certify(&agent).await, UNAUTHORISED);
    fs::write(&place.sources.registry, registry_text()).unwrap();
    fs::write(place.file("1.toml"), text).unwrap();
    assert_eq!(place.certify(&agent).await, Ok(()));
}

/// A member has more files put into its folder than anybody looks at.
#[tokio::test]
async fn too_many_statements_stop_their_member_alone() {
    let place = Place::new();
    let agent = place.agent();
    place.state("1.toml", 1, true, &[1, 2]);
    for number in 1..MOST_STATEMENTS {
        fs::write(place.file(&format!("{number}.other")), "").unwrap();
    }
    assert_eq!(place.certify(&agent).await, Ok(()), "as many as may be");
    fs::write(place.file("one.more"), "").unwrap();
    says(place.certify(&agent).await, "acme has more than 10000 files of statements");
    says(place.list(&agent, 1, &[1]).await, "acme has more than 10000 files of statements");
    assert_eq!(place.anchor(&agent).await, Ok(()), "others go on");
}

fn opened(place: &Place, pace: Pace) -> Agent {
    Agent::open(place.sources.clone(), Kept::open(&place.memory).unwrap(), pace).unwrap()
}

#[tokio::test]
async fn who_asks_while_as_many_wait_as_may_hears_that_it_is_busy() {
    let place = Place::new();
    let agent = opened(&place, Pace { waiting: 1, ..Pace::default() });
    let both = tokio::join!(place.anchor(&agent), place.anchor(&agent));
    let mut said = [both.0, both.1];
    said.sort();
    let [good, busy] = said;
    assert_eq!(good, Ok(()));
    says(busy, "busy");
    assert_eq!(place.anchor(&agent).await, Ok(()));
}

/// One client asks 64 times at once, and goes on: another one is heard all the same.
#[tokio::test]
async fn one_client_takes_no_places_of_others() {
    let place = Place::new();
    let agent = opened(&place, Pace::default());
    let certificate = tbs(&place.world.authority_certificate(place.world.acme(), 2));
    let mut asked: Vec<_> = (0..64).map(|_| Box::pin(ask_as("one", &agent, "rpki-ta", "sign", &certificate))).collect();
    // Each takes its place, or hears that there is none; nobody takes the answers, so all places stay taken.
    let mut busy = 0;
    poll_fn(|context| {
        for one in &mut asked {
            busy += usize::from(matches!(one.as_mut().poll(context), Poll::Ready(Err(said)) if said.contains("busy")));
        }
        Poll::Ready(())
    })
    .await;
    assert_eq!(busy, 48);
    assert_eq!(ask_as("other", &agent, "rpki-ta", "sign", &certificate).await, Ok(()));
    drop(asked);
}

#[tokio::test]
async fn files_are_looked_at_now_and_then_and_times_always() {
    let place = Place::new();
    let begins = Time::now().timestamp() + 10;
    let text = statement(&place.attestation, 1, begins, Some(begins + 100), &[1, 2]);
    fs::write(place.file("1.toml"), text).unwrap();
    let agent = opened(&place, Pace { look: Duration::from_secs(3_600), ..Pace::default() });
    says(place.certify(&agent).await, UNAUTHORISED);
    place.state("2.toml", 2, false, &[1, 2]);
    while Time::now().timestamp() < begins {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(place.certify(&agent).await, Ok(()), "it counts now, and the other file has not been looked at");
}

#[test]
fn an_agent_that_has_lost_its_memory_does_not_start() {
    let place = Place::new();
    let open = |memory: &Path| -> Result<Agent, AgentError> {
        Agent::open(place.sources.clone(), Kept::open(memory)?, Pace::default())
    };
    let first = open(&place.memory).unwrap();
    assert!(matches!(open(&place.memory), Err(AgentError::Memory(MemoryError::Busy(_)))), "one agent has it");
    drop(first);
    fs::remove_file(&place.memory).unwrap();
    assert!(matches!(open(&place.memory), Err(AgentError::Memory(MemoryError::Missing(_)))));
    drop(Kept::begin(&place.memory).unwrap());
    open(&place.memory).unwrap();
}
