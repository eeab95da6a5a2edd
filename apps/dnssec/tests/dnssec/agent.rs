//! What a node hears.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use theta_dnssec::{
    agent::Agent,
    consent::Terms,
    digests::Guesses,
    sources::{CopyFrom, Sources},
    transfer::{Primary, tsig::Key},
};
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server::Agent as _};
use tonic::Request;

use crate::{
    primary::{LINE, Lie, Server, address, start_for},
    zones::{KEYS, NONE, ZONE, key_lines, record, signed, www},
};

pub(crate) async fn ask(agent: &Agent, operation: &str, statement: &[u8]) -> Result<(), String> {
    let statement = statement.to_vec().into();
    let request = ConsentRequest { operation: operation.to_owned(), statement, ..ConsentRequest::default() };
    let ConsentResponse { consents, reason } = agent.consent(Request::new(request)).await.unwrap().into_inner();
    if consents { Ok(()) } else { Err(reason) }
}

#[tokio::test]
async fn digests_and_whole_sets_are_consented_to_by_one_rule() {
    let folder = tempfile::tempdir().unwrap();
    let [zone, keys] = ["zone", "keys"].map(|name| folder.path().join(name));
    fs::write(&zone, ZONE).unwrap();
    let digits = hex::encode([9; 32]);
    let lines = KEYS.map(|key| {
        use base64ct::{Base64, Encoding as _};
        let record = record(257, &key);
        format!("257 3 13 {}\n", Base64::encode_string(&record[4..]))
    });
    fs::write(&keys, lines.concat() + &digits).unwrap();
    let terms = Terms::lasting(35 * 86_400);
    let guesses = Guesses::of_days(&[14]);
    let agent = Agent::open(Sources {
        origin: "example.".to_owned(),
        zone: CopyFrom::File(zone.clone()),
        keys,
        nsec3: None,
        terms,
        guesses,
        key_request: None,
    })
    .unwrap();

    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let digest = Sha256::digest(www(now).write());
    assert_eq!(ask(&agent, "sign-digest", &digest).await, Ok(()));
    assert_eq!(ask(&agent, "sign", &www(now).write()).await, Ok(()), "a client that lets the nodes hash");
    let mail = signed(now, "mail.example", 1, &[&[192, 0, 2, 7]]);
    let foreign = Sha256::digest(mail.write());
    assert_eq!(ask(&agent, "sign-digest", &foreign).await, Err(NONE.to_owned()));
    assert!(ask(&agent, "sign", &digest).await.unwrap_err().contains("this is no record set"));
    assert!(ask(&agent, "decrypt", &digest).await.unwrap_err().contains("decrypt is nothing that a zone needs"));
    // The operator puts it into the copy.
    fs::write(&zone, format!("{ZONE}mail A 192.0.2.7\n")).unwrap();
    assert_eq!(ask(&agent, "sign-digest", &foreign).await, Ok(()));
    fs::write(&zone, "no zone\n").unwrap();
    assert!(ask(&agent, "sign-digest", &foreign).await.unwrap_err().contains("the zone"));
}

/// A copy that has expired consents to nothing, and one that comes again does.
#[tokio::test]
async fn nothing_is_consented_to_without_a_primary() {
    let server = Server::start(Lie::Nothing);
    let (start, hosts) = (start_for(7, 1), [1, 2].map(|host| address("www", [192, 0, 2, host])));
    let [one, two] = hosts;
    server.said.lock().unwrap().messages = vec![vec![start.clone(), one, two, start]];
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    fs::write(&keys, key_lines()).unwrap();
    let primary = Primary {
        address: server.address.to_string(),
        key: Key::parse(LINE).unwrap(),
        refresh: Duration::from_millis(20),
    };
    let agent = Agent::open(Sources {
        origin: "example.".to_owned(),
        zone: CopyFrom::Primary(Box::new(primary), Vec::new()),
        keys,
        nsec3: None,
        terms: Terms::lasting(35 * 86_400),
        guesses: Guesses::of_days(&[14]),
        key_request: None,
    })
    .unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let deadline = Instant::now() + Duration::from_secs(60);
    for (lie, words) in [(Lie::Nothing, None), (Lie::Refused, Some("has expired")), (Lie::Nothing, None)] {
        server.said.lock().unwrap().lie = lie;
        loop {
            let objection = ask(&agent, "sign", &www(now).write()).await.err();
            match (&objection, words) {
                (None, None) => break,
                (Some(objection), Some(words)) if objection.contains(words) => break,
                _ => assert!(Instant::now() < deadline, "{lie:?}: {objection:?}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
