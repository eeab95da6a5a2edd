//! A group of replicas on a network that delays, loses, repeats and parts, and on disks that forget what was not written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta_agreement::{MemberKeys, Verdict};
use theta_groups::Secret;
use theta_ledger::{
    Action, CertifiedEntry, Digest, DropReason, Effect, Entry, Genesis, Host, Input, LedgerState, Memory, Recipient,
    Replica, ReplicaOffence, Said, Warrant,
};
use theta_names::NodeId;

pub(crate) fn node(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

pub(crate) fn keys(number: u16) -> MemberKeys {
    keys_of(number, 7)
}

/// The keys of one machine of a member: its first one is machine 7.
pub(crate) fn keys_of(number: u16, machine: u8) -> MemberKeys {
    let mut master = [machine; 32];
    master[..2].copy_from_slice(&number.to_be_bytes());
    MemberKeys::new(node(number), Secret::new(master))
}

pub(crate) fn genesis(n: u16, k: u16) -> Genesis {
    let members = (1..=n).map(|number| keys(number).member().clone()).collect();
    Genesis::new("test", k, members).unwrap()
}

/// What a node has on its disk, and what its clients have granted.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) entries: Vec<CertifiedEntry>,
    pub(crate) said: Vec<Said>,
    /// Whether the node knows that its disk lacks something.
    pub(crate) lacks: bool,
    /// The warrants that served last, as they were written.
    pub(crate) warrants: Vec<Vec<u8>>,
    granted: BTreeSet<Digest>,
}

impl Host for Disk {
    fn judge(&self, _state: &LedgerState, entry: &Entry) -> Verdict {
        if self.granted.contains(&entry.action.digest()) { Verdict::Valid } else { Verdict::Invalid }
    }

    fn entry(&self, height: u64) -> Option<CertifiedEntry> {
        self.entries.get(usize::try_from(height).unwrap().checked_sub(1)?).cloned()
    }
}

/// One node: its disk, and its replica while it runs.
pub(crate) struct Node {
    pub(crate) disk: Disk,
    pub(crate) replica: Option<Replica>,
    pub(crate) dropped: Vec<(Action, DropReason)>,
    /// What it was asked for by way of others.
    pub(crate) asked: Vec<(Action, Vec<u8>)>,
    pub(crate) blamed: BTreeMap<NodeId, Vec<ReplicaOffence>>,
}

/// What a message is on its way: from, to, bytes.
pub(crate) type Letter = (NodeId, NodeId, Vec<u8>);

/// What a liar makes of what it would send to one other, and of what comes to it.
pub(crate) type Liar = Box<dyn FnMut(NodeId, Vec<u8>, &mut ChaCha20Rng) -> Vec<Vec<u8>>>;

pub(crate) struct Net {
    pub(crate) genesis: Genesis,
    /// Which machine a member has, if not the first.
    pub(crate) machines: BTreeMap<NodeId, u8>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) liars: BTreeMap<NodeId, Liar>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) now: u64,
    queue: Vec<(u64, Letter)>,
    /// Of 100 messages so many are lost.
    pub(crate) loss: u32,
    /// The longest delay in ticks.
    pub(crate) delay: u64,
    /// How far each node's clock is off.
    pub(crate) skew: BTreeMap<NodeId, i64>,
    /// Bytes sent.
    pub(crate) sent: usize,
    /// Letters sent, and how many of them with entries.
    pub(crate) letters: usize,
    pub(crate) entries: usize,
    /// Nodes on one side of a partition; empty if there is none.
    pub(crate) cut: BTreeSet<NodeId>,
}

impl Net {
    pub(crate) fn new(n: u16, k: u16, seed: u64) -> Self {
        Self::of(genesis(n, k), n, seed)
    }

    /// A group with this beginning, of which these many run.
    pub(crate) fn of(genesis: Genesis, n: u16, seed: u64) -> Self {
        let mut net = Self {
            genesis,
            machines: BTreeMap::new(),
            nodes: BTreeMap::new(),
            liars: BTreeMap::new(),
            rng: ChaCha20Rng::seed_from_u64(seed),
            now: 1_000_000,
            queue: Vec::new(),
            loss: 0,
            delay: 1,
            skew: BTreeMap::new(),
            sent: 0,
            letters: 0,
            entries: 0,
            cut: BTreeSet::new(),
        };
        for number in 1..=n {
            net.join(node(number));
        }
        net
    }

    /// Starts a node that has nothing.
    pub(crate) fn join(&mut self, id: NodeId) {
        let disk = Disk::default();
        let (dropped, asked, blamed) = (Vec::new(), Vec::new(), BTreeMap::new());
        self.nodes.insert(id, Node { disk, replica: None, dropped, asked, blamed });
        self.start(id);
    }

    /// Another machine, with nothing but its keys, in a member's place.
    pub(crate) fn exchange(&mut self, id: NodeId, machine: u8) {
        self.machines.insert(id, machine);
        self.join(id);
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    /// Starts a node from its disk.
    pub(crate) fn start(&mut self, id: NodeId) {
        let session = self.rng.next_u64();
        let node = self.nodes.get_mut(&id).unwrap();
        let mut state = LedgerState::new(&self.genesis);
        node.disk.entries.iter().for_each(|entry| state.advance(entry).unwrap());
        let said = node.disk.said.clone();
        // What is on disk is read back as it was written.
        let said = said.iter().map(|said| Said::decode(&said.encode()).unwrap()).collect();
        let machine = self.machines.get(&id).copied().unwrap_or(7);
        let keys = Arc::new(keys_of(id.get(), machine));
        let memory = if node.disk.lacks { Memory::Lost } else { Memory::Kept };
        let warrants = node.disk.warrants.iter().map(|warrant| Warrant::decode(warrant).unwrap()).collect();
        let replica = Replica::new(state, Some(keys), said, (memory, session)).under(warrants);
        node.disk.lacks |= !replica.remembers();
        node.replica = Some(replica);
    }

    pub(crate) fn stop(&mut self, id: NodeId) {
        self.nodes.get_mut(&id).unwrap().replica = None;
    }

    pub(crate) fn grant(&mut self, to: impl IntoIterator<Item = u16>, action: &Action) {
        for number in to {
            self.nodes.get_mut(&node(number)).unwrap().disk.granted.insert(action.digest());
        }
    }

    /// A client asks these nodes, which all agree.
    pub(crate) fn ask(&mut self, whom: impl IntoIterator<Item = u16> + Clone, action: &Action) {
        self.grant(whom.clone(), action);
        for number in whom {
            self.feed(node(number), &|replica, disk| {
                replica.handle(Input::Propose(action.clone(), b"because".to_vec()), disk)
            });
        }
    }

    /// A client asks all.
    pub(crate) fn ask_all(&mut self, action: &Action) {
        let all: Vec<u16> = self.nodes.keys().map(|id| id.get()).collect();
        self.ask(all, action);
    }

    /// Gives a node an input, and carries out the effects in their order. Where `crash` says so, the node stops before one of them.
    pub(crate) fn feed(&mut self, id: NodeId, input: &dyn Fn(&mut Replica, &Disk) -> Vec<Effect>) {
        self.feed_until(id, input, None);
    }

    pub(crate) fn feed_until(
        &mut self,
        id: NodeId,
        input: &dyn Fn(&mut Replica, &Disk) -> Vec<Effect>,
        crash: Option<usize>,
    ) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let Some(replica) = node.replica.as_mut() else { return };
        let effects = input(replica, &node.disk);
        for (done, effect) in effects.into_iter().enumerate() {
            if Some(done) == crash {
                self.stop(id);
                return;
            }
            self.carry_out(id, effect);
        }
    }

    fn carry_out(&mut self, id: NodeId, effect: Effect) {
        let node = self.nodes.get_mut(&id).unwrap();
        match effect {
            Effect::Remembers => node.disk.lacks = false,
            Effect::Forgot => node.disk.lacks = true,
            Effect::Record(said) => node.disk.said.push(said),
            Effect::Decided(entry) => {
                assert_eq!(entry.entry.height, u64::try_from(node.disk.entries.len()).unwrap() + 1);
                node.disk.said.retain(|said| said.height > entry.entry.height);
                let read = CertifiedEntry::decode(&entry.encode()).unwrap();
                assert_eq!(read, *entry);
                node.disk.entries.push(*entry);
            }
            Effect::Warrants(warrants) => node.disk.warrants = warrants.iter().map(Warrant::encode).collect(),
            Effect::Unserving(refusal) => panic!("{refusal}"),
            Effect::Undecided(error) => panic!("a quorum has decided nothing: {error}"),
            Effect::Dropped(action, why) => node.dropped.push((action, why)),
            Effect::Asked(action, reason) => node.asked.push((action, reason)),
            Effect::Blame(culprit, offence) => node.blamed.entry(culprit).or_default().push(offence),
            Effect::Send(to, bytes) => {
                let others: Vec<NodeId> = match to {
                    Recipient::All => self.nodes.keys().copied().filter(|other| *other != id).collect(),
                    Recipient::One(other) => vec![other],
                };
                for other in others {
                    self.post(id, other, bytes.clone());
                }
            }
        }
    }

    fn post(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        let letters = match self.liars.get_mut(&from) {
            Some(liar) => liar(to, bytes, &mut self.rng),
            None => vec![bytes],
        };
        for bytes in letters {
            self.send(from, to, bytes);
        }
    }

    /// Puts a letter on its way, whoever wrote it.
    pub(crate) fn send(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        self.sent += bytes.len();
        self.letters += 1;
        self.entries += usize::from(bytes.get(1) == Some(&3));
        let parted = self.cut.contains(&from) != self.cut.contains(&to);
        if !parted && self.below(100) >= u64::from(self.loss) {
            let at = self.now + self.rng.next_u64() % (self.delay + 1);
            self.queue.push((at, (from, to, bytes)));
        }
    }

    /// Delivers what is due, in any order.
    pub(crate) fn deliver(&mut self) {
        loop {
            let due: Vec<usize> =
                self.queue.iter().enumerate().filter(|(_, (at, _))| *at <= self.now).map(|(i, _)| i).collect();
            if due.is_empty() {
                return;
            }
            let pick = usize::try_from(self.below(u64::try_from(due.len()).unwrap())).unwrap();
            let (_, (from, to, bytes)) = self.queue.swap_remove(due[pick]);
            self.feed(to, &|replica, disk| replica.handle(Input::Message(from, &bytes), disk));
        }
    }

    pub(crate) fn tick(&mut self) {
        self.now += 1;
        let now = self.now;
        for id in self.nodes.keys().copied().collect::<Vec<_>>() {
            let now = now.saturating_add_signed(self.skew.get(&id).copied().unwrap_or(0));
            self.feed(id, &|replica, disk| replica.handle(Input::Tick(now), disk));
        }
        self.deliver();
        self.agree();
    }

    /// Ticks until it holds; says whether it did within so many.
    pub(crate) fn run_until(&mut self, ticks: u32, holds: impl Fn(&Self) -> bool) -> bool {
        self.deliver();
        for _ in 0..ticks {
            if holds(self) {
                return true;
            }
            self.tick();
        }
        holds(self)
    }

    pub(crate) fn honest(&self) -> impl Iterator<Item = (&NodeId, &Node)> {
        self.nodes.iter().filter(|(id, _)| !self.liars.contains_key(id))
    }

    /// Whether all honest nodes that run are at this height.
    pub(crate) fn all_at(&self, height: u64) -> bool {
        self.honest().filter_map(|(_, node)| node.replica.as_ref()).all(|replica| replica.state().height() == height)
    }

    /// No two honest nodes disagree, and each state follows from the entries.
    pub(crate) fn agree(&self) {
        let longest = self.honest().map(|(_, node)| &node.disk.entries).max_by_key(|entries| entries.len()).unwrap();
        for (_, node) in self.honest() {
            for (one, other) in node.disk.entries.iter().zip(longest) {
                assert_eq!(one.entry, other.entry, "two entries at one height");
            }
        }
    }
}
