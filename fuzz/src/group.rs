//! A group that was founded with cards, its true history, and what a fuzz target may assert of bytes about it: nothing but that history is
//! ever believed, and nothing but what its members signed verifies.

use std::path::Path;
use std::sync::LazyLock;

use theta_agreement::{Ballot, MemberKeys, Verdict, VoteCertificate, VoteKind};
use theta_client::ClientFile;
use theta_groups::{Secret, Transcript};
use theta_ledger::founding::{Card, CardContent, Founding, NodeSignatures};
use theta_ledger::{
    Action, CertifiedEntry, Consent, Demand, Effect, Entry, Genesis, Host, Input, LedgerError, LedgerState,
    MemberChange, Memory, OperatorKey, Outcome, Replica, StandIn, Warrant,
};
use theta_names::codec::Writer;
use theta_names::{Delivery, KeyState, NodeId};
use theta_statements::{CeremonyRequest, KeyChange, StateChange};

/// The seconds at which everything here is made.
const NOW: u64 = 1_000_000;
/// The most bytes that a replica sends to one other for one message of that one: an honest answer, and what it says at a tick.
const MOST_SENT: usize = 2 << 20;

/// The keys of one machine of a member: its first one is machine 7.
#[must_use]
pub fn machine(number: u16, machine: u8) -> MemberKeys {
    let mut master = [machine; 32];
    master[..2].copy_from_slice(&number.to_be_bytes());
    MemberKeys::new(node(number), Secret::new(master))
}

fn node(number: u16) -> NodeId {
    NodeId::try_from(number).expect("a number above 0")
}

fn operator(number: u16) -> OperatorKey {
    let mut master = [9; 32];
    master[..2].copy_from_slice(&number.to_be_bytes());
    OperatorKey::new(Secret::new(master))
}

/// The card of a member's machine, made so many seconds later.
fn card(number: u16, of: u8, later: u64) -> Card {
    let keys = machine(number, of);
    let content = CardContent {
        name: format!("node {number:02}").parse().expect("a name"),
        ceremony_key: keys.member().verifying_key().bytes().try_into().expect("32 bytes"),
        tls_key: [of.wrapping_mul(40).wrapping_add(u8::try_from(number).expect("few")); 32],
        operator_key: operator(number).id().expect("a key"),
        peer_address: format!("n{number}.example:7100").parse().expect("an address"),
        api_address: format!("[2001:db8::{number}]:7101").parse().expect("an address"),
        made: NOW + later,
        until: 2 * NOW,
    };
    let signature = keys.sign(&content.signed());
    content.with_signature(signature, &NodeSignatures).expect("our own signature")
}

fn founding(n: u16, k: u16) -> Founding {
    Founding::assemble("test", k, (1..=n).map(|number| card(number, 7, 0)).collect()).expect("a founding")
}

/// A founding, the states after each entry of its history, and the entries.
pub struct Group {
    /// With what it began.
    pub founding: Founding,
    /// The same, as a ledger has it.
    pub genesis: Genesis,
    /// The state after so many entries.
    pub states: Vec<LedgerState>,
    /// The entries.
    pub entries: Vec<CertifiedEntry>,
    /// In a small group, what lets another machine vote in the place of member 3's.
    pub warrant: Option<Warrant>,
}

/// Any 2 of 4, and any 2 of 3, which is small.
pub static GROUPS: LazyLock<[Group; 2]> = LazyLock::new(|| [Group::new(4), Group::new(3)]);

impl Group {
    fn new(n: u16) -> Self {
        let founding = founding(n, 2);
        let genesis = Genesis::of(&founding).expect("a genesis");
        let mut group =
            Self { states: vec![LedgerState::new(&genesis)], founding, genesis, entries: Vec::new(), warrant: None };
        let (key, suite) = ("a".parse().expect("a name"), "frost-ed25519".parse().expect("a suite"));
        let change = KeyChange::Create { key, suite, delivery: Delivery::All, k: 2, holders: vec![1, 2, 3] };
        group.decides(Action::Begin(CeremonyRequest { nonce: [1; 32], change }), n);
        let outcome = Outcome::Activated { public: b"a public key".to_vec(), certificate: b"a certificate".to_vec() };
        group.decides(Action::End { ceremony: 1, outcome }, n);
        let (key, state) = ("a".parse().expect("a name"), KeyState::Disabled);
        group.decides(Action::SetState(StateChange { key, version: None, state, generation: 1, not_before: 0 }), n);
        group.decides(Action::Members(MemberChange::Renew { node: 2, card: card(2, 7, 90_000) }), n);
        group.warrant = group.warrant();
        group
    }

    /// The present.
    #[must_use]
    pub fn state(&self) -> &LedgerState {
        self.states.last().expect("the state of the beginning")
    }

    fn warrant(&self) -> Option<Warrant> {
        let gone = machine(3, 7).member().verifying_key().bytes().try_into().expect("32 bytes");
        let stand_in = StandIn { node: node(3), gone, card: card(3, 8, 90_000) };
        let warrant = Warrant::new(*self.state().id(), self.state().height() + 1, 2 * NOW, vec![stand_in]).expect("a warrant");
        let signed = [1, 2, 3].into_iter().fold(warrant, |all, number| all.with_signature(node(number), &operator(number)));
        self.state().check_warrant(&signed).is_ok().then_some(signed)
    }

    fn decides(&mut self, action: Action, n: u16) {
        let mut state = self.state().clone();
        let all: Vec<MemberKeys> = (1..=n).map(|number| machine(number, 7)).collect();
        let time = NOW + 100_000 * (state.height() + 1);
        // What a member says of itself needs no reason.
        let reason = if matches!(action, Action::Members(_)) { Vec::new() } else { b"because".to_vec() };
        let mut entry = state.next_entry(action, reason, time);
        let demand = state.demand(&entry.action, &entry.reason).unwrap_or_else(|_| Demand::nothing());
        let subject = state.consent_subject(&entry.action);
        let able = all.iter().filter(|keys| demand.is_of(keys.party().node())).take(demand.needed);
        entry.consents = able.map(|keys| Consent::give(&subject, keys, entry.time)).collect();
        let entry = certified(&state, entry, &all);
        state.advance(&entry).expect("what all have signed");
        self.entries.push(entry);
        self.states.push(state);
    }

    /// Whether a state is one that this group was in.
    #[must_use]
    pub fn was(&self, state: &LedgerState) -> bool {
        let height = usize::try_from(state.height()).expect("small");
        self.states.get(height).is_some_and(|known| known.head() == state.head())
    }

    /// What a client keeps of the history.
    #[must_use]
    pub fn kept(&self) -> Vec<u8> {
        let mut file = [b"theta ledger 1\n".as_slice(), self.genesis.id().as_bytes()].concat();
        for entry in &self.entries {
            let bytes = entry.encode();
            file.extend_from_slice(&u32::try_from(bytes.len()).expect("short").to_be_bytes());
            file.extend_from_slice(&bytes);
        }
        file
    }

    /// Member 1, with the whole history but for the last entries, of which there are so many.
    fn member(&self, behind: usize) -> (Replica, Shelf<'_>) {
        let at = self.states.len().saturating_sub(1 + behind);
        let keys = std::sync::Arc::new(machine(1, 7));
        let replica = Replica::new(self.states[at].clone(), Some(keys), Vec::new(), (Memory::Kept, 5));
        (replica, Shelf(&self.entries))
    }
}

fn certified(state: &LedgerState, entry: Entry, voters: &[MemberKeys]) -> CertifiedEntry {
    let (ballot, digest) = (Ballot::new(VoteKind::Precommit, 0), entry.digest(state.id()));
    let vote = |keys: &MemberKeys| (keys.party(), sign(state, keys, (&entry, ballot), &digest));
    let certificate = VoteCertificate::new(ballot, digest, voters.iter().map(vote).collect());
    CertifiedEntry { entry, certificate, warrants: Vec::new() }
}

/// A member's vote, as `spec/ledger.md` has it.
fn sign(state: &LedgerState, keys: &MemberKeys, (entry, ballot): (&Entry, Ballot), body: &[u8]) -> [u8; 64] {
    let message = Transcript::new("theta/ledger/vote/v1")
        .with("ledger", state.id().as_bytes())
        .with("height", &entry.height.to_be_bytes())
        .with("previous", &entry.previous)
        .with("author", &keys.party().get().to_be_bytes())
        .with("ballot", &ballot.write(Writer::default()).finish())
        .with("body", body);
    keys.sign(&message)
}

/// What a replica asks of its node: it wants everything, and has the entries.
struct Shelf<'a>(&'a [CertifiedEntry]);

impl Host for Shelf<'_> {
    fn judge(&self, _: &LedgerState, _: &Entry) -> Verdict {
        Verdict::Valid
    }

    fn entry(&self, height: u64) -> Option<CertifiedEntry> {
        self.0.get(usize::try_from(height.checked_sub(1)?).ok()?).cloned()
    }
}

/// Messages of member 2 into the replica of member 1, each behind its length in two bytes; a length of 0 is a tick. One member can make it
/// neither decide something nor believe anything but the true history; and it sends so much at most.
pub fn replica_messages(script: &[u8]) {
    let Some((first, mut rest)) = script.split_first() else { return };
    let group = &GROUPS[usize::from(first & 1)];
    let (mut replica, shelf) = group.member(usize::from(first >> 1) % group.states.len());
    let mut now = group.state().time() + 10;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (bytes, behind) = behind.split_at(length);
        rest = behind;
        let input = if length == 0 {
            now += 1;
            Input::Tick(now)
        } else {
            Input::Message(node(2), bytes)
        };
        let mut sent = 0;
        for effect in replica.handle(input, &shelf) {
            match effect {
                Effect::Decided(entry) => {
                    let decoded = CertifiedEntry::decode(&entry.encode()).expect("our own bytes");
                    assert_eq!(decoded, *entry);
                }
                Effect::Send(_, bytes) => sent += bytes.len(),
                _ => {}
            }
        }
        assert!(sent <= MOST_SENT, "{sent} bytes for a message of {length}");
        assert!(group.was(replica.state()), "one member alone has made it believe something");
    }
}

/// Messages as member 2 sends them honestly, as scripts.
#[must_use]
pub fn replica_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, group) in (0_u8..).zip(&*GROUPS) {
        for behind in 0..=2_u8 {
            let mut script = vec![number | (behind << 1)];
            for message in honest_messages(group) {
                script.extend_from_slice(&u16::try_from(message.len()).expect("short").to_be_bytes());
                script.extend_from_slice(&message);
                script.extend_from_slice(&[0, 0]);
            }
            seeds.push(script);
        }
    }
    seeds
}

fn honest_messages(group: &Group) -> Vec<Vec<u8>> {
    let keys = std::sync::Arc::new(machine(2, 7));
    let (mut replica, shelf) =
        (Replica::new(group.state().clone(), Some(keys), Vec::new(), (Memory::Kept, 6)), Shelf(&group.entries));
    let (key, suite) = ("b".parse().expect("a name"), "sg02-p256".parse().expect("a suite"));
    let change = KeyChange::Create { key, suite, delivery: Delivery::All, k: 2, holders: vec![1, 2, 3] };
    let action = Action::Begin(CeremonyRequest { nonce: [2; 32], change });
    let mut inputs =
        vec![Input::Tick(group.state().time() + 10), Input::Connected(node(1)), Input::Propose(action, vec![])];
    inputs.extend(group.warrant.clone().map(Input::Warrant));
    let want = Writer::new(1).u8(4).u64(0).finish();
    inputs.push(Input::Message(node(1), &want));
    let disable = StateChange { key: "a".parse().expect("a name"), version: None, state: KeyState::Active, generation: 2, not_before: 0 };
    inputs.push(Input::Expect(Action::SetState(disable)));
    inputs.extend((11..20).map(|later| Input::Tick(group.state().time() + later)));
    let effects = inputs.into_iter().flat_map(|input| replica.handle(input, &shelf)).collect::<Vec<_>>();
    let mut sent: Vec<Vec<u8>> = effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send(_, bytes) => Some(bytes),
            _ => None,
        })
        .collect();
    sent.dedup();
    // What fits behind a length of two bytes.
    sent.retain(|bytes| bytes.len() < usize::from(u16::MAX));
    sent
}

/// The history that a client has kept: whatever stands in the file, it believes nothing but what was decided.
pub fn kept_ledger(bytes: &[u8]) {
    for group in &*GROUPS {
        let (state, end) = theta_client::read_kept_ledger(bytes, &group.genesis);
        assert!(group.was(&state), "a file has made a client believe what nobody decided");
        assert!(state.height() == 0 || end <= bytes.len());
    }
}

/// Entries as nodes show them to a client: only the next true one is taken.
pub fn entries(bytes: &[u8]) {
    if let Ok(action) = Action::decode(bytes) {
        assert_eq!(action.encode(), bytes);
        for group in &*GROUPS {
            for state in &group.states {
                let _: Result<(), _> = state.check(&action);
            }
        }
    }
    if let Ok(entry) = Entry::decode(bytes) {
        assert_eq!(entry.encode(), bytes);
    }
    let Ok(certified) = CertifiedEntry::decode(bytes) else { return };
    assert_eq!(certified.encode(), bytes);
    for group in &*GROUPS {
        for state in &group.states {
            let mut state = state.clone();
            match state.advance(&certified) {
                Ok(()) => assert!(group.was(&state), "an entry that nobody decided"),
                Err(LedgerError::Height { .. } | LedgerError::Fork(_)) => {}
                Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
            }
        }
    }
}

/// Changes of members, with or without the tag of an action: what is in force proves itself, and no signature can be made up.
pub fn member_changes(bytes: &[u8]) {
    let Ok(action) = Action::decode(bytes) else { return };
    assert_eq!(action.encode(), bytes);
    let Action::Members(change) = &action else { return };
    for group in &*GROUPS {
        let state = group.state();
        let checked = state.check(&action);
        if let (Ok(()), Some(card)) = (&checked, change.card()) {
            assert!(KNOWN_CARDS.contains(card), "a card that nobody signed");
        }
        // Nothing of it comes about without the votes of the members.
        let entry = state.next_entry(action.clone(), Vec::new(), state.time() + 200_000);
        let mut other = state.clone();
        assert!(other.advance(&certified(state, entry, &[])).is_err());
        if let Err(refusal) = checked {
            assert_eq!(refusal.to_string().lines().count(), 1, "{refusal}");
        }
    }
}

/// All cards that were ever signed here.
static KNOWN_CARDS: LazyLock<Vec<Card>> = LazyLock::new(|| {
    let mut cards: Vec<Card> = (1..=5).map(|number| card(number, 7, 0)).collect();
    cards.extend([card(2, 7, 90_000), card(3, 8, 90_000), card(2, 7, 900_000), card(3, 9, 900_000)]);
    cards
});

/// Changes of members as nodes propose them.
#[must_use]
pub fn member_seeds() -> Vec<Vec<u8>> {
    let changes = [
        MemberChange::Add(card(5, 7, 0)),
        MemberChange::Replace { node: 3, card: card(3, 9, 900_000) },
        MemberChange::Renew { node: 2, card: card(2, 7, 900_000) },
        MemberChange::Remove { node: 4 },
    ];
    changes.into_iter().map(|change| Action::Members(change).encode()).collect()
}

/// Warrants, as bytes and as text: only that which the operators have signed serves.
pub fn warrants(bytes: &[u8]) {
    let mut found: Vec<Warrant> = Vec::new();
    if let Ok(warrant) = Warrant::decode(bytes) {
        assert_eq!(warrant.encode(), bytes);
        found.push(warrant);
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        match Warrant::all_from_text(text) {
            Ok(warrants) => found.extend(warrants),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    }
    for warrant in found {
        assert_eq!(Warrant::all_from_text(&warrant.to_text()).expect("our own text"), [warrant.clone()]);
        for group in &*GROUPS {
            for state in &group.states {
                // Other signatures of the same operators would serve as well; nobody here has made any.
                let serves = state.check_warrant(&warrant).is_ok();
                assert!(!serves || group.warrant.as_ref() == Some(&warrant), "a warrant that nobody signed");
            }
        }
    }
}

/// Warrants as operators sign them.
#[must_use]
pub fn warrant_seeds() -> Vec<Vec<u8>> {
    let warrant = GROUPS[1].warrant.clone().expect("a small group");
    vec![warrant.encode(), warrant.to_text().into_bytes()]
}

/// Cards, foundings and operators' keys, as bytes and as text: whatever is read has one encoding, and nobody else's signature is made up.
pub fn foundings(bytes: &[u8]) {
    if let Ok(card) = Card::decode(bytes, &NodeSignatures) {
        assert_eq!(card.encode(), bytes);
        assert!(KNOWN_CARDS.contains(&card), "a card that nobody signed");
    }
    if let Ok(founding) = Founding::decode(bytes, &NodeSignatures) {
        assert_eq!(founding.encode(), bytes);
        assert!(founding.members().iter().all(|card| KNOWN_CARDS.contains(card)));
        assert!(Genesis::of(&founding).is_ok());
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    match Card::all_from_text(text, &NodeSignatures) {
        Ok(cards) => assert!(cards.iter().all(|card| KNOWN_CARDS.contains(card))),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    match Founding::from_text(text, &NodeSignatures) {
        Ok(founding) => {
            let again = Founding::from_text(&founding.to_text(), &NodeSignatures).expect("our own text");
            assert_eq!(again.fingerprint(), founding.fingerprint());
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    if let Ok(key) = OperatorKey::from_text(text) {
        let again = OperatorKey::from_text(key.to_text().expose()).expect("our own text");
        assert_eq!(again.id().expect("a key"), key.id().expect("a key"));
    }
}

/// What nodes and people send each other before there is a group.
#[must_use]
pub fn founding_seeds() -> Vec<Vec<u8>> {
    let group = &GROUPS[0];
    let card = &KNOWN_CARDS[0];
    let key = operator(1).to_text().expose().clone().into_bytes();
    let [bytes, texts] = [
        [card.encode(), group.founding.encode()],
        [card.to_text().into_bytes(), group.founding.to_text().into_bytes()],
    ];
    bytes.into_iter().chain(texts).chain([key]).collect()
}

/// The one file of a client: what is read is written and read again as it was.
pub fn client_file(text: &str) {
    let path = Path::new("some.client");
    match ClientFile::parse(text, path) {
        Ok(file) => {
            let written = file.to_text();
            let read = ClientFile::parse(written.expose(), path).expect("our own text");
            assert_eq!((&read.name, &read.group, &read.founding), (&file.name, &file.group, &file.founding));
            assert_eq!(read.to_text().expose(), written.expose());
            let _: Result<_, _> = file.signer(path);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// Client files with and without a founding and secrets. The private keys are no keys: whether they are is asked later.
#[must_use]
pub fn client_seeds() -> Vec<Vec<u8>> {
    let group = &GROUPS[0];
    let mut nodes = String::new();
    for (number, card) in group.founding.numbered() {
        let content = card.content();
        nodes += &format!(
            "[[group.node]]\nid = {number}\nname = \"{}\"\npeer_address = \"{}\"\napi_address = \"{}\"\ncertificate = \"{}\"\n\
             ceremony_key = \"{}\"\n",
            card.name(),
            content.peer_address.as_str(),
            content.api_address.as_str(),
            hex::encode(content.tls_key),
            hex::encode(content.ceremony_key)
        );
    }
    let head = "# A client\n\nformat = 1\nname = \"ann\"\n";
    let founding = format!(
        "fingerprint = \"{}\"\nfounding = \"\"\"\n{}\"\"\"\n",
        group.founding.fingerprint(),
        group.founding.to_text()
    );
    let secrets = "certificate = \"\"\"\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\"\"\"\nprivate_key = \"\"\"\n\
                   -----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n\"\"\"\nrequest_key = \"\"\"\n\
                   -----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n\"\"\"\n";
    let tail = format!("[group]\nname = \"test\"\nthreshold = 2\n{nodes}");
    [format!("{head}{founding}{secrets}{tail}"), format!("{head}{tail}"), format!("{head}{secrets}{tail}")]
        .map(String::into_bytes)
        .into()
}

/// Entries, certified and not, and actions.
#[must_use]
pub fn entry_seeds() -> Vec<Vec<u8>> {
    let parts =
        |certified: &CertifiedEntry| [certified.encode(), certified.entry.encode(), certified.entry.action.encode()];
    GROUPS.iter().flat_map(|group| group.entries.iter().flat_map(parts)).collect()
}
