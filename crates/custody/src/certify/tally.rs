//! Counts the promises for one slot.

use std::collections::BTreeMap;

use theta_names::NodeId;
use theta_statements::Digest;

use super::promise::{Equivocation, Promise, Subject};

/// The most digests of one node for one slot that are kept, beside those for which requests wait: two prove that it
/// lies, more serve certificates that it helped to make.
const MOST_OF_ONE: usize = 4;

/// The valid promises for one slot, by node. A node with more than one lies.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(BTreeMap<NodeId, Vec<(Digest, [u8; 64])>>);

impl Tally {
    pub(super) fn has(&self, promise: &Promise) -> bool {
        let of = self.0.get(&promise.node);
        of.is_some_and(|all| all.iter().any(|(digest, _)| *digest == promise.digest))
    }

    /// Whether there is room for another promise.
    pub(super) fn has_room(&self, promise: &Promise, is_wanted: bool) -> bool {
        is_wanted || self.0.get(&promise.node).is_none_or(|all| all.len() < MOST_OF_ONE)
    }

    /// Adds a valid promise; returns the proof if its node has made another before.
    pub(super) fn add(&mut self, subject: &Subject, promise: Promise) -> Option<Equivocation> {
        let Promise { node, digest, signature } = promise;
        let all = self.0.entry(node).or_default();
        let first = all.first().map(|&(digest, signature)| Promise { node, digest, signature });
        all.push((digest, signature));
        first.map(|first| Equivocation { subject: subject.clone(), first, second: promise })
    }

    /// The nodes that have promised.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.keys().copied()
    }

    /// The nodes that have promised the slot to this message.
    pub(super) fn supporters(&self, digest: &Digest) -> Vec<NodeId> {
        let supports = |all: &Vec<(Digest, [u8; 64])>| all.iter().any(|(promised, _)| promised == digest);
        self.0.iter().filter(|(_, all)| supports(all)).map(|(node, _)| *node).collect()
    }

    /// The message to which `need` nodes or more promise the slot.
    pub(super) fn certified(&self, need: u16) -> Option<Digest> {
        self.digests().into_iter().find(|(_, count)| *count >= usize::from(need)).map(|(digest, _)| digest)
    }

    fn digests(&self) -> BTreeMap<Digest, usize> {
        let mut counts = BTreeMap::new();
        self.0.values().flatten().for_each(|(digest, _)| *counts.entry(*digest).or_insert(0_usize) += 1);
        counts
    }

    /// Whether no message can be certified any more unless one more node lies: for every digest m, |V_m| + (n - |V|) <
    /// need. V is the set of nodes with one promise, V_m those that promise m. Nodes that have promised twice are not
    /// in V, since they may promise once more.
    pub(super) fn is_void(&self, n: u16, need: u16) -> bool {
        let split = self.split();
        let counted: usize = split.iter().sum();
        let open = usize::from(n).saturating_sub(counted);
        split.first().copied().unwrap_or(0).saturating_add(open) < usize::from(need)
    }

    /// How many nodes promise the slot to each message, the largest number first. Liars are not counted.
    pub(super) fn split(&self) -> Vec<usize> {
        let mut counts: BTreeMap<Digest, usize> = BTreeMap::new();
        for all in self.0.values() {
            if let [(digest, _)] = all.as_slice() {
                *counts.entry(*digest).or_insert(0) += 1;
            }
        }
        let mut split: Vec<usize> = counts.into_values().collect();
        split.sort_unstable_by(|a, b| b.cmp(a));
        split
    }

    /// All promises, or only those for one message.
    pub(super) fn promises(&self, only: Option<Digest>) -> Vec<Promise> {
        let of = |(&node, all): (&NodeId, &Vec<(Digest, [u8; 64])>)| {
            let promise = move |&(digest, signature): &(Digest, [u8; 64])| Promise { node, digest, signature };
            all.iter().map(promise).collect::<Vec<_>>()
        };
        let all = self.0.iter().flat_map(of);
        all.filter(|promise| only.is_none_or(|digest| digest == promise.digest)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(promises: &[(u16, u8)]) -> Tally {
        let subject = Subject { key: "k".to_owned(), slot: 1, rule: "r".to_owned() };
        let mut tally = Tally::default();
        for &(node, digest) in promises {
            let node = NodeId::try_from(node).unwrap();
            let _ = tally.add(&subject, Promise { node, digest: Digest([digest; 32]), signature: [0; 64] });
        }
        tally
    }

    /// Four nodes, one of which may lie: three promises certify.
    #[test]
    fn certified_void_or_open() {
        for (promises, certified, void) in [
            (&[][..], None, false),
            (&[(1, 1), (2, 1)], None, false),
            (&[(1, 1), (2, 1), (3, 1)], Some(1), false),
            (&[(1, 1), (2, 1), (3, 2)], None, false),
            (&[(1, 1), (2, 1), (3, 2), (4, 2)], None, true),
            (&[(1, 1), (2, 1), (3, 2), (4, 3)], None, true),
            (&[(1, 1), (2, 2), (3, 3)], None, true),
            (&[(1, 1), (2, 2)], None, false),
            // Node 4 lies, and may promise anything once more.
            (&[(1, 1), (2, 1), (3, 2), (4, 2), (4, 3)], None, false),
            (&[(1, 1), (2, 2), (3, 3), (4, 1), (4, 2)], None, true),
            (&[(1, 1), (2, 1), (3, 2), (4, 2), (4, 1)], Some(1), false),
        ] {
            let tally = tally(promises);
            assert_eq!(tally.certified(3), certified.map(|digest: u8| Digest([digest; 32])), "{promises:?}");
            assert_eq!(tally.is_void(4, 3), void, "{promises:?}");
        }
    }

    /// No honest promises, in any order, certify two messages, or one after the slot was void; and promises of liars
    /// certify nothing in a void slot unless one more node lies.
    #[test]
    fn all_small_groups() {
        for (n, t) in [(3_u16, 1_u16), (4, 1), (4, 2), (5, 1), (5, 2)] {
            let need = theta_policy::SlotQuorum { n, t }.need();
            for code in 0..4_u32.pow(u32::from(n)) {
                let of = |node: u16| code / 4_u32.pow(u32::from(node)) % 4;
                // 0 means that the node is not heard. The last t nodes are liars, which promise everything.
                let honest = (0..n - t).map(|node| (node + 1, u8::try_from(of(node)).unwrap()));
                let mut promises: Vec<(u16, u8)> = honest.filter(|(_, digest)| *digest > 0).collect();
                let liars = (n - t..n).flat_map(|node| [(node + 1, 1), (node + 1, 2), (node + 1, 3)]);
                promises.extend(liars);
                let tally = tally(&promises);
                let certified = tally.digests().values().filter(|count| **count >= usize::from(need)).count();
                assert!(certified <= 1, "{n} {t} {promises:?}");
                assert!(certified == 0 || !tally.is_void(n, need), "{n} {t} {promises:?}");
            }
        }
    }
}
