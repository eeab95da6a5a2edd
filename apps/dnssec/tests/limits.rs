//! An agent whose process has no files left. A program of its own: the limit is the process's.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    fs::{self, File},
    thread,
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use theta_dnssec::{
    agent::Agent,
    consent::Terms,
    digests::Guesses,
    sources::{CopyFrom, Sources},
};
use theta_wire::agent::{ConsentRequest, agent_server::Agent as _};
use tonic::Request;

/// That a file could not be opened once does not stand in the file: it is read again, though it does not change.
#[tokio::test]
async fn a_file_that_was_not_read_once_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let [zone, keys] = ["zone", "keys"].map(|name| folder.path().join(name));
    let text = "@ 60 IN SOA ns root 1 2 3 4 5\n";
    fs::write(&keys, hex::encode([7; 32])).unwrap();
    fs::write(&zone, text).unwrap();
    let agent = Agent::open(Sources {
        origin: "example.".to_owned(),
        zone: CopyFrom::File(zone.clone()),
        keys: keys.clone(),
        nsec3: None,
        terms: Terms::lasting(86_400),
        guesses: Guesses::of_days(&[14]),
        key_request: None,
    })
    .unwrap();
    let objection = async || {
        let request = ConsentRequest { operation: "sign".to_owned(), ..ConsentRequest::default() };
        agent.consent(Request::new(request)).await.unwrap().into_inner().reason
    };
    assert!(objection().await.contains("this is no record set"));

    // Another zone, which was there for long.
    fs::write(&zone, format!("{text}www 60 IN A 192.0.2.1\n")).unwrap();
    for path in [&zone, &keys] {
        let old = SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    thread::sleep(Duration::from_millis(600));
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
    let refused = objection().await;
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(refused.contains("cannot read"), "{refused}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !objection().await.contains("this is no record set") {
        assert!(Instant::now() < deadline, "{}", objection().await);
        thread::sleep(Duration::from_millis(50));
    }
}
