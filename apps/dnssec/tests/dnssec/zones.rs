//! A zone, its keys, and sets as a signer signs them, written by hand.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use theta_dnssec::{
    consent::{Terms, consent},
    denial::{Denial, hashed::Parameters},
    digests::{Ahead, Current, Guesses, Recogniser, candidates::Candidates, offline::Offline},
    key_request::KeyRequest,
    keys::Keys,
    owner::Owner,
    signed::SignedSet,
    zone::Zone,
};

pub(crate) const ZONE: &str = "$ORIGIN example.\n$TTL 300\n@ SOA ns admin 10 3600 60 86400 60\n@ NS ns\nns A 127.0.0.1\n\
                        www A 192.0.2.1\nwww A 192.0.2.2\n*.wild TXT \"any\"\n\
                        sub NS ns.sub\nsub DS 1 15 2 aa\nns.sub A 192.0.2.9\nZ AAAA 2001:db8::1\n@ DNSKEY 257 3 15 AAAA\n";
pub(crate) const NOW: u64 = 1_795_000_000;
pub(crate) const TERMS: Terms = Terms::lasting(35 * 86_400);
/// What an agent says of a digest that is none of the zone's.
pub(crate) const NONE: &str = "no record set of the zone has this digest with times of now";

/// Two keys of P-256. Nothing is signed with them here, so any bytes will do.
pub(crate) const KEYS: [[u8; 64]; 2] = [[7; 64], [8; 64]];

/// Both as operators write them down.
pub(crate) fn key_lines() -> String {
    use base64ct::{Base64, Encoding as _};
    KEYS.map(|key| format!("257 3 13 {}\n", Base64::encode_string(&key))).concat()
}

/// The data of a key's record.
pub(crate) fn record(flags: u16, key: &[u8; 64]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[3, 13], key].concat()
}

/// The tag of a record, as appendix B of RFC 4034 computes it.
pub(crate) fn tag(record: &[u8]) -> u16 {
    let bytes = record.iter().enumerate();
    let sum: u32 = bytes.map(|(at, byte)| if at & 1 == 1 { u32::from(*byte) } else { u32::from(*byte) << 8 }).sum();
    u16::try_from((sum + (sum >> 16)) & 0xffff).unwrap()
}

pub(crate) fn owner(text: &str) -> Owner {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let wire = labels.flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
    Owner::read(&wire.chain([0]).collect::<Vec<_>>()).unwrap().0
}

/// What a name server signs with the second key as the one that signs the zone, as Knot does at a time.
pub(crate) fn signed(time: u64, name: &str, rtype: u16, data: &[&[u8]]) -> SignedSet {
    let owner = owner(name);
    SignedSet {
        rtype,
        algorithm: 13,
        labels: u8::try_from(owner.labels()).unwrap(),
        ttl: 300,
        expiration: u32::try_from(time + 14 * 86_400).unwrap(),
        inception: u32::try_from(time - 5_400).unwrap(),
        tag: tag(&record(256, &KEYS[1])),
        signer: self::owner("example"),
        owner,
        data: data.iter().map(|data| data.to_vec()).collect(),
    }
}

pub(crate) fn www(time: u64) -> SignedSet {
    signed(time, "www.example", 1, &[&[192, 0, 2, 1], &[192, 0, 2, 2]])
}

/// A map of types below 64.
pub(crate) fn map(types: &[u16]) -> Vec<u8> {
    let mut map = [0; 8];
    types.iter().for_each(|kind| map[usize::from(kind / 8)] |= 0x80 >> (kind % 8));
    let last = map.iter().rposition(|byte| *byte != 0);
    last.map_or_else(Vec::new, |last| [&[0, u8::try_from(last + 1).unwrap()], &map[..=last]].concat())
}

/// A link of the chain of names.
pub(crate) fn link(time: u64, name: &str, next: &str, types: &[u16]) -> SignedSet {
    SignedSet { ttl: 60, ..signed(time, name, 47, &[&[owner(next).wire(), map(types)].concat()]) }
}

pub(crate) fn start(time: u64, serial: u32) -> SignedSet {
    let names = [owner("ns.example").wire(), owner("admin.example").wire()].concat();
    let numbers = [serial, 3_600, 60, 86_400, 60].map(u32::to_be_bytes).concat();
    signed(time, "example", 6, &[&[names, numbers].concat()])
}

/// An agent without its socket.
pub(crate) struct Operator {
    zone: Zone,
    nsec3: Option<Parameters>,
    denial: Denial,
    keys: Keys,
    offline: Option<Offline>,
    terms: Terms,
    candidates: Candidates,
    number: u64,
    pub(crate) recogniser: Recogniser,
}

impl Operator {
    pub(crate) fn of(text: &str, origin: &str, keys: &str, guesses: Guesses) -> Self {
        Self::with_denial((text, origin), None, keys, guesses)
    }

    /// The same with NSEC3, if there are parameters for it; the zone is a text and its name.
    pub(crate) fn with_denial(
        (text, origin): (&str, &str),
        nsec3: Option<Parameters>,
        keys: &str,
        guesses: Guesses,
    ) -> Self {
        let zone = Zone::parse(text.as_bytes(), origin).unwrap();
        let (denial, keys) = (Denial::new(&zone, nsec3.as_ref(), None).unwrap(), Keys::parse(keys).unwrap());
        let candidates = Candidates::new(&zone, &denial, &keys, &[]);
        let recogniser = Recogniser::new(guesses);
        Self { zone, nsec3, denial, keys, offline: None, terms: TERMS, candidates, number: 0, recogniser }
    }

    /// What a key that is kept offline is asked to sign, and what the operator demands of that.
    pub(crate) fn request(&mut self, text: &str, terms: Terms) {
        let request = KeyRequest::parse(text, self.zone.apex()).unwrap();
        self.offline = Some(Offline::new(Arc::new(self.zone.clone()), &self.keys, &[], request));
        self.terms = terms;
        self.renew();
    }

    fn renew(&mut self) {
        self.candidates = Candidates::new(&self.zone, &self.denial, &self.keys, &[]);
        self.number += 1;
    }

    /// The operator of the zone above.
    pub(crate) fn new() -> Self {
        Self::with(Guesses::of_days(&[14]))
    }

    pub(crate) fn with(guesses: Guesses) -> Self {
        Self::of(ZONE, "example.", &key_lines(), guesses)
    }

    /// Another copy of the zone.
    pub(crate) fn change(&mut self, text: &str) {
        self.zone = Zone::parse(text.as_bytes(), "example.").unwrap();
        self.denial = Denial::new(&self.zone, self.nsec3.as_ref(), Some(&self.denial)).unwrap();
        self.renew();
    }

    /// How many sets may be signed, and by how many.
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.candidates.len() * self.candidates.signers().len()).unwrap()
    }

    /// What the agent answers about a digest.
    pub(crate) fn ask(&self, digest: &[u8], now: u64) -> Result<Vec<u8>, String> {
        self.ask_as("signer", digest, now)
    }

    /// The same, where this client asks.
    pub(crate) fn ask_as(&self, client: &str, digest: &[u8], now: u64) -> Result<Vec<u8>, String> {
        let current = Current { candidates: &self.candidates, offline: self.offline.as_ref(), number: self.number };
        let bytes = self.recogniser.recognise(client, digest, current, now)?;
        self.decide(&bytes, now).map(|()| bytes)
    }

    /// What is signed besides, as whoever looks ahead is told.
    pub(crate) fn ahead(&self, digest: &[u8], wanted: (usize, usize), now: u64) -> Result<Ahead, String> {
        let current = Current { candidates: &self.candidates, offline: self.offline.as_ref(), number: self.number };
        self.recogniser.ahead(digest, wanted, current, now)
    }

    /// The same about what is to be signed, as it is.
    pub(crate) fn decide(&self, bytes: &[u8], now: u64) -> Result<(), String> {
        consent(bytes, &self.zone, &self.denial, &self.keys, &self.terms, now)
    }

    /// Whether a set is recognised from its digest alone.
    #[track_caller]
    pub(crate) fn knows(&self, set: &SignedSet, now: u64) {
        let bytes = set.write();
        assert_eq!(self.ask(&Sha256::digest(&bytes), now), Ok(bytes), "{set:?}");
    }

    #[track_caller]
    pub(crate) fn refuses(&self, set: &SignedSet, now: u64) {
        self.refuses_as(set, now, NONE);
    }

    /// Whether it is refused with these words.
    #[track_caller]
    pub(crate) fn refuses_as(&self, set: &SignedSet, now: u64, words: &str) {
        assert_eq!(self.ask(&Sha256::digest(set.write()), now).unwrap_err(), words, "{set:?}");
    }

    /// Blocks that a question makes the agent hash in a search.
    pub(crate) fn cost(&self, set: &SignedSet, now: u64) -> u64 {
        let before = self.recogniser.hashed();
        self.knows(set, now);
        self.recogniser.hashed() - before
    }
}
