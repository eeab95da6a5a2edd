//! Records of the copy before, which a signer may have signed once more when it takes them away.

use std::{fs, thread, time::Duration};

use theta_dnssec::{
    agent::Agent,
    consent::{Terms, consent, consent_to_previous},
    denial::{Denial, hashed::Parameters},
    digests::Guesses,
    keys::Keys,
    signed::SignedSet,
    sources::{CopyFrom, Sources},
    zone::Zone,
};

use crate::{
    agent::ask,
    zones::{NOW, TERMS, ZONE, key_lines, link, owner, record, signed, start, tag, www},
};

const RRSIG: u16 = 46;
const NSEC: u16 = 47;
const DNSKEY: u16 = 48;
const NSEC3: u16 = 50;
const APEX: [u16; 5] = [2, 6, RRSIG, NSEC, DNSKEY];

/// The zone with a new first name, another type at a name, an address less, and a later serial.
fn changed() -> String {
    let zone = ZONE.replace("admin 10 ", "admin 20 ").replace("www A 192.0.2.2\n", "www AAAA 2001:db8::2\n");
    format!("{zone}a A 192.0.2.7\n")
}

/// Two copies, of which one has taken the other's place.
struct Copies {
    before: Zone,
    after: Zone,
    denials: [Denial; 2],
    keys: Keys,
    terms: Terms,
}

impl Copies {
    fn new(nsec3: Option<&str>) -> Self {
        let changed = changed();
        let [before, after] = [ZONE, changed.as_str()].map(|text| Zone::parse(text.as_bytes(), "example.").unwrap());
        let parameters: Option<Parameters> = nsec3.map(|text| text.parse().unwrap());
        let denials = [&before, &after].map(|zone| Denial::new(zone, parameters.as_ref(), None).unwrap());
        let terms = Terms { longest_of_previous: 14 * 86_400, ..TERMS };
        Self { before, after, denials, keys: Keys::parse(&key_lines()).unwrap(), terms }
    }

    /// What is said of a set to which the copy in force has an objection.
    fn ask(&self, set: &SignedSet) -> Option<Result<(), String>> {
        let (bytes, [before, after]) = (set.write(), &self.denials);
        consent(&bytes, &self.after, after, &self.keys, &self.terms, NOW).unwrap_err();
        consent_to_previous(&bytes, &self.before, before, &self.keys, &self.terms, NOW)
    }
}

/// What Knot has signed once more: denials of names whose records change, that of the top, and the start of authority.
#[test]
fn denials_and_the_start_of_the_copy_before_may_be_signed() {
    let copies = Copies::new(None);
    for set in [
        link(NOW, "example", "ns.example", &APEX),
        link(NOW, "www.example", "z.example", &[1, RRSIG, NSEC]),
        start(NOW, 10),
        start(NOW, 19),
    ] {
        assert_eq!(copies.ask(&set), Some(Ok(())), "{set:?}");
        // What is wrong with the signature is wrong all the same.
        for bent in [
            SignedSet { tag: 1, ..set.clone() },
            SignedSet { signer: owner("other"), ..set.clone() },
            SignedSet { expiration: u32::try_from(NOW - 1).unwrap(), ..set.clone() },
            SignedSet { inception: u32::try_from(NOW + 7_200).unwrap(), ..set.clone() },
            SignedSet { ttl: 86_400, ..set.clone() },
        ] {
            assert_eq!(copies.ask(&bent), None, "{bent:?}");
        }
    }
}

#[test]
fn nothing_else_of_the_copy_before_is_signed() {
    let copies = Copies::new(None);
    for set in [
        www(NOW),
        signed(NOW, "example", DNSKEY, &[&record(257, &[9; 64])]),
        signed(NOW, "victim.example", 1, &[&[192, 0, 2, 66]]),
        link(NOW, "example", "sub.example", &APEX),
        link(NOW, "www.example", "z.example", &[28, RRSIG, NSEC]),
        start(NOW, 9),
    ] {
        assert_eq!(copies.ask(&set), None, "{set:?}");
    }
}

/// They end when the name server's signatures do, and not at the end of what any signature may have.
#[test]
fn signatures_of_the_copy_before_last_as_long_as_a_signer_makes_them() {
    let copies = Copies::new(None);
    let lasting = |days: u64| SignedSet {
        expiration: u32::try_from(NOW + days * 86_400).unwrap(),
        ..link(NOW, "example", "ns.example", &APEX)
    };
    assert_eq!(copies.ask(&lasting(14)), Some(Ok(())));
    let words = "example. NSEC is of the copy before, and its signature would end in 1296000 seconds, more than 1209600 (--lifetime)";
    assert_eq!(copies.ask(&lasting(15)), Some(Err(words.to_owned())));
}

#[test]
fn hashed_denials_of_the_copy_before_may_be_signed() {
    let copies = Copies::new(Some("0"));
    let [before, after] = &copies.denials;
    let now: Vec<_> = after.added(&copies.after).collect();
    let gone: Vec<_> = before.added(&copies.before).filter(|added| !now.contains(added)).collect();
    assert!(!gone.is_empty());
    for added in gone {
        assert_eq!(added.rtype, NSEC3);
        for data in added.data {
            let (owner, data) = (added.owner.clone(), [data].into());
            let set = SignedSet { rtype: NSEC3, ttl: 60, owner, data, ..www(NOW) };
            assert_eq!(copies.ask(&set), Some(Ok(())), "{set:?}");
        }
    }
}

/// An agent with a key of Ed25519, that looks at the copy before for so many seconds, and where its copy is.
fn agent(folder: &tempfile::TempDir, previous_seconds: u32) -> Agent {
    let [zone, keys] = ["zone", "keys"].map(|name| folder.path().join(name));
    fs::write(&zone, ZONE).unwrap();
    fs::write(&keys, hex::encode([9; 32])).unwrap();
    let terms = Terms { previous_seconds, ..Terms::lasting(35 * 86_400) };
    let (origin, guesses) = ("example.".to_owned(), Guesses::of_days(&[14]));
    Agent::open(Sources { origin, zone: CopyFrom::File(zone), keys, key_request: None, nsec3: None, terms, guesses })
        .unwrap()
}

/// What is signed now, with the agent's key.
fn by_its_key(set: impl Fn(u64) -> SignedSet) -> Vec<u8> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let key = [&[1, 0, 3, 15][..], &[9; 32]].concat();
    SignedSet { algorithm: 15, tag: tag(&key), ..set(now) }.write()
}

fn old_link() -> Vec<u8> {
    by_its_key(|now| link(now, "example", "ns.example", &APEX))
}

const UNLIKE: &str = "the NSEC record of example. does not say what is in the zone: a.example. and NS SOA RRSIG NSEC DNSKEY there, \
                      ns.example. and NS SOA RRSIG NSEC DNSKEY here";

#[tokio::test]
async fn an_agent_looks_at_the_copy_before_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(&folder, 10);
    assert_eq!(ask(&agent, "sign", &old_link()).await, Ok(()));
    fs::write(folder.path().join("zone"), changed()).unwrap();
    let new_link = by_its_key(|now| link(now, "example", "a.example", &APEX));
    assert_eq!(ask(&agent, "sign", &new_link).await, Ok(()));
    assert_eq!(ask(&agent, "sign", &old_link()).await, Ok(()));
    let old_addresses = ask(&agent, "sign", &by_its_key(www)).await;
    assert_eq!(old_addresses, Err("www.example. A has other data in the zone".to_owned()));
    // It looks at times in whole seconds.
    thread::sleep(Duration::from_secs(11));
    assert_eq!(ask(&agent, "sign", &old_link()).await, Err(UNLIKE.to_owned()));
    assert_eq!(ask(&agent, "sign", &new_link).await, Ok(()));
}

#[tokio::test]
async fn an_agent_that_is_told_so_never_looks_at_the_copy_before() {
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(&folder, 0);
    fs::write(folder.path().join("zone"), changed()).unwrap();
    assert_eq!(ask(&agent, "sign", &old_link()).await, Err(UNLIKE.to_owned()));
}
