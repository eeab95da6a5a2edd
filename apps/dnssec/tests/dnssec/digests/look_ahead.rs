//! What is told to whoever looks ahead: what a real signer signs, and nothing that nodes would not sign.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use theta_dnssec::{
    agent::Agent,
    consent::Terms,
    digests::Guesses,
    look_ahead::serve_ahead,
    owner::Owner,
    signed::SignedSet,
    sources::{CopyFrom, Sources},
};
use theta_look_ahead::{AskError, Digest, Question, ask, is_served};

use crate::{
    name_servers::{Signed, zones},
    zones::{KEYS, NONE, NOW, Operator, ZONE, key_lines, link, record, signed, start, tag, www},
};

const SOA: u16 = 6;
const RRSIG: u16 = 46;
const NSEC: u16 = 47;
const DNSKEY: u16 = 48;
const NSEC3: u16 = 50;
const NSEC3PARAM: u16 = 51;
const PATIENCE: Duration = Duration::from_secs(20);

fn digest(set: &SignedSet) -> Digest {
    Sha256::digest(set.write()).into()
}

/// Whatever of its zone Knot asks for first: all else follows that it signs with that key, but for what has several forms.
#[test]
fn all_that_knot_signs_follows_from_one_digest() {
    for (operator, signed) in zones() {
        let zone_key = signed.iter().find(|one| one.kind == SOA).unwrap().tag;
        let known = |one: &&Signed| one.tag == zone_key && !matches!(one.kind, SOA | NSEC3PARAM);
        let apex = Owner::read(b"\x07example\0").unwrap().0;
        let denies_apex = |one: &Signed| one.kind == NSEC3 || (one.kind == NSEC && one.owner == apex);
        let known: BTreeMap<Digest, &Signed> =
            signed.iter().filter(known).map(|one| (Sha256::digest(&one.bytes).into(), one)).collect();
        let mut least = known.len();
        for one in &signed {
            let own: Digest = Sha256::digest(&one.bytes).into();
            let ahead = operator.ahead(&own, (4_096, 4_096), one.time).unwrap();
            if one.tag != zone_key {
                continue;
            }
            let listed: BTreeSet<Digest> = ahead.digests.iter().copied().collect();
            assert_eq!(listed.len(), ahead.digests.len(), "each once");
            assert!(!listed.contains(&own), "it is being signed");
            assert!(listed.iter().all(|digest| known.contains_key(digest)), "Knot signs all of it");
            let left: Vec<&&Signed> = known
                .iter()
                .filter(|(digest, _)| !listed.contains(*digest) && **digest != own)
                .map(|(_, one)| one)
                .collect();
            assert!(
                left.len() <= 1,
                "{:?}",
                left.iter().map(|one| (one.kind, one.owner.to_string())).collect::<Vec<_>>()
            );
            assert!(left.iter().all(|one| denies_apex(one)), "what has several forms is left out");
            least = least.min(listed.len());
            let owners: Vec<&Owner> = ahead.digests.iter().map(|digest| &known[digest].owner).collect();
            let hashed = ahead.digests.iter().position(|digest| known[digest].kind == NSEC3).unwrap_or(owners.len());
            assert!(owners[..hashed].is_sorted() && owners[hashed..].is_sorted(), "in the order of names");
        }
        assert!(least >= known.len() - 2, "{least} of {}", known.len());
    }
}

/// Whatever is listed is what agents consent to.
#[test]
fn all_that_follows_is_consented_to() {
    for (operator, signed) in zones() {
        let one = &signed[0];
        let ahead = operator.ahead(&Sha256::digest(&one.bytes), (0, 4_096), one.time).unwrap();
        assert!(ahead.digests.len() > 10);
        for digest in &ahead.digests {
            let bytes = operator.ask(digest, one.time + 1).unwrap();
            assert_eq!(Digest::from(Sha256::digest(&bytes)), *digest);
        }
        let first = operator.ask(&ahead.digests[0], one.time).unwrap();
        assert_eq!(ahead.first, Some(first));
    }
}

#[test]
fn pages_follow_each_other() {
    let operator = Operator::new();
    let all = operator.ahead(&digest(&start(NOW, 10)), (0, 100), NOW).unwrap().digests;
    // At the top NS; ns, www, *.wild and z with one set each, sub with one of digests, and of all six but the top their denial.
    assert_eq!(all.len(), 11);
    assert_eq!(operator.ahead(&digest(&www(NOW)), (100, 100), NOW).unwrap().digests.len(), 10);
    let mut paged: Vec<Digest> = operator.ahead(&digest(&start(NOW, 10)), (0, 3), NOW).unwrap().digests;
    while let Some(last) = paged.last() {
        let page = operator.ahead(last, (0, 3), NOW + 5).unwrap().digests;
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let own = all.iter().position(|one| *one == digest(&www(NOW))).unwrap();
    assert_eq!(
        operator.ahead(&all[own], (2, 4), NOW).unwrap().digests,
        [&all[own - 2..own], &all[own + 1..own + 3]].concat()
    );
    let denial = link(NOW, "www.example", "z.example", &[1, RRSIG, NSEC]);
    assert_eq!(all[own + 1], digest(&denial), "the denial of a name comes with its sets");
    // Signed with the key of the keys: that signs no more of them, or everything; who asks sees which.
    let keys =
        SignedSet { tag: tag(&record(257, &KEYS[0])), ..signed(NOW, "example", DNSKEY, &[&record(257, &KEYS[0])]) };
    let of_keys = operator.ahead(&digest(&keys), (0, 100), NOW).unwrap().digests;
    assert!(of_keys.len() == 11 && of_keys.iter().all(|one| !all.contains(one)));
    assert_eq!(operator.ahead(&[7; 32], (0, 100), NOW).unwrap_err(), NONE);
    assert_eq!(
        operator.ahead(&[7; 31], (0, 100), NOW).unwrap_err(),
        "a digest of SHA-256 has 32 bytes, and this has 31"
    );
}

/// Whoever asks again and again makes the agent hash only so much.
#[test]
fn answers_are_bounded() {
    let operator = Operator::with(Guesses { most_blocks: 20_000, ..Guesses::of_days(&[14]) });
    let asked = digest(&www(NOW));
    let words = (0..100_000).find_map(|_| operator.ahead(&asked, (100, 100), NOW).err()).unwrap();
    assert_eq!(words, "too many questions about what is signed next: for a second this agent answers no more");
    operator.ahead(&asked, (100, 100), NOW + 1).unwrap();
}

fn agent(folder: &Path, keys: &str, terms: Terms) -> Agent {
    let [zone, keys_file] = ["zone", "keys"].map(|name| folder.join(name));
    fs::write(&zone, ZONE).unwrap();
    fs::write(&keys_file, keys).unwrap();
    let (origin, guesses) = ("example.".to_owned(), Guesses::of_days(&[14]));
    Agent::open(Sources {
        origin,
        zone: CopyFrom::File(zone),
        keys: keys_file,
        key_request: None,
        nsec3: None,
        terms,
        guesses,
    })
    .unwrap()
}

#[test]
fn a_module_is_answered_over_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ahead.sock");
    // One that was left there.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let agent = agent(folder.path(), &key_lines(), Terms::lasting(35 * 86_400));
    let _service = serve_ahead(&agent, &socket).unwrap();
    is_served(&socket, PATIENCE).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let asked = |set: &SignedSet| ask(&socket, &Question { digest: digest(set), before: 100, most: 100 }, PATIENCE);
    assert_eq!(asked(&www(now)).unwrap().len(), 10);
    let words = |set: &SignedSet| match asked(set).unwrap_err() {
        AskError::Unknown { words, .. } => words,
        error @ AskError::Absent { .. } => panic!("{error}"),
    };
    assert_eq!(words(&signed(now, "mail.example", 1, &[&[192, 0, 2, 7]])), NONE);
    // The copy changes.
    fs::write(folder.path().join("zone"), format!("{ZONE}mail A 192.0.2.7\n")).unwrap();
    assert_eq!(asked(&www(now)).unwrap().len(), 12);
    fs::write(folder.path().join("zone"), "no zone\n").unwrap();
    assert!(words(&www(now)).contains("the zone"));
}

/// Nobody is sent to the nodes with what they would refuse.
#[test]
fn what_would_be_refused_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ahead.sock");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let words = |keys: &str, terms: Terms, set: &SignedSet| {
        let agent = agent(folder.path(), keys, terms);
        let _service = serve_ahead(&agent, &socket).unwrap();
        ask(&socket, &Question { digest: digest(set), before: 0, most: 100 }, PATIENCE).unwrap_err().to_string()
    };
    let short = words(&key_lines(), Terms::lasting(86_400), &www(now));
    assert!(short.contains("the signature would be valid for 1215000 seconds, more than 86400"), "{short}");
    let lines = key_lines();
    let roles: String = lines.lines().zip(["ksk", "zsk"]).map(|(line, role)| format!("{role} {line}\n")).collect();
    let keys =
        SignedSet { tag: tag(&record(257, &KEYS[0])), ..signed(now, "example", DNSKEY, &[&record(257, &KEYS[0])]) };
    let ksk = words(&roles, Terms::lasting(35 * 86_400), &keys);
    assert!(ksk.contains("signs DNSKEY, CDS and CDNSKEY records, and nothing else (ksk)"), "{ksk}");
}
