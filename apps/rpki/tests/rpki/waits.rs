//! What an agent waits for, and what it does not do by a clock that may be wrong.

use std::{
    fs,
    io::Write as _,
    path::Path,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use theta_rpki::{
    agent::{Agent, Pace},
    kept::Kept,
    memory::Digest,
    sources::Sources,
    store::Store,
};

use crate::{
    agent::{ask, sources},
    issuer::{DAY, World, keys, roa, tbs},
};

/// A store on a share whose server is gone for now.
#[derive(Default)]
struct Gone {
    /// Whether somebody waits, and whether the server is back.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Gone {
    fn wait(&self) -> Result<Vec<u8>, String> {
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, back)| !*back).unwrap());
        Err("it is not there".to_owned())
    }

    fn is_waited_for(&self) -> bool {
        self.state.lock().unwrap().0
    }

    fn comes_back(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

impl Store for Gone {
    fn content(&self, _: &Digest) -> Result<Vec<u8>, String> {
        self.wait()
    }

    fn published(&self, _: &str) -> Result<Vec<u8>, String> {
        self.wait()
    }
}

fn open(sources: &Sources, memory: &Path, pace: Pace, store: Arc<Gone>) -> Agent {
    Agent::open_with(sources.clone(), Kept::open(memory).unwrap(), pace, store).unwrap()
}

/// The issuer's share does not answer: what needs nothing of it is decided all the same.
#[tokio::test]
async fn who_waits_for_the_store_keeps_nobody_else_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, memory) = sources(folder.path());
    let (world, store) = (World::new(), Arc::new(Gone::default()));
    let agent = open(&sources, &memory, Pace::default(), Arc::clone(&store));
    // Nobody has authorised it, so its content is looked at to say what it is.
    let asked = world.object(&roa(64_496, &["192.0.2.0/24"]), keys().objects[0], 1).1.remove(0);
    let waiting = {
        let agent = agent.clone();
        tokio::spawn(async move { ask(&agent, "rpki-ee-0", "sign", &asked).await })
    };
    while !store.is_waited_for() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let certificate = tbs(&world.authority_certificate(world.acme(), 2));
    let decided = tokio::time::timeout(Duration::from_secs(5), ask(&agent, "rpki-ta", "sign", &certificate)).await;
    store.comes_back();
    assert_eq!(decided, Ok(Ok(())));
    let said = waiting.await.unwrap().unwrap_err();
    assert!(said.contains("cannot be seen: it is not there"), "{said}");
}

#[tokio::test]
async fn the_store_is_waited_for_so_long() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, memory) = sources(folder.path());
    let (world, store) = (World::new(), Arc::new(Gone::default()));
    let pace = Pace { patience: Duration::from_millis(50), ..Pace::default() };
    let agent = open(&sources, &memory, pace, Arc::clone(&store));
    let asked = world.object(&roa(64_496, &["192.0.2.0/24"]), keys().objects[0], 1).1.remove(0);
    // More often than files may be read at once.
    for _ in 0..20 {
        let said = ask(&agent, "rpki-ee-0", "sign", &asked).await.unwrap_err();
        assert!(said.contains("the store does not answer in time"), "{said}");
    }
    let certificate = tbs(&world.authority_certificate(world.acme(), 2));
    assert_eq!(ask(&agent, "rpki-ta", "sign", &certificate).await, Ok(()));
    store.comes_back();
}

/// A clock that has jumped: by it statements would count that have not begun, for good.
#[tokio::test]
async fn by_a_clock_that_is_far_ahead_nothing_is_consented_to() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, memory) = sources(folder.path());
    let world = World::new();
    let certificate = tbs(&world.authority_certificate(world.acme(), 2));
    let consents = |days: i64, after_break: bool| {
        let mut known = fs::File::options().append(true).open(&memory).unwrap();
        writeln!(known, "list ta {:0>40} {:0>64} {}", 1, 1, world.now - days * DAY).unwrap();
        let pace = Pace { after_break, ..Pace::default() };
        let agent = Agent::open(sources.clone(), Kept::open(&memory).unwrap(), pace).unwrap();
        let certificate = certificate.clone();
        async move { ask(&agent, "rpki-ta", "sign", &certificate).await }
    };
    let said = consents(60, false).await.unwrap_err();
    assert!(said.contains("the last consent was 60 days ago") && said.contains("--after-break"), "{said}");
    assert_eq!(consents(60, true).await, Ok(()));
    assert_eq!(consents(46, false).await, Ok(()), "it has consented since");
}
