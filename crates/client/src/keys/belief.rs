//! Decides which public key to believe from the answers of nodes.
//!
//! Up to k - 1 nodes of the group may lie, with the group's k, and up to k - 1 holders of a key, with the key's k. So a key
//! is believed if max(group k, key k) of its holders give it. A liar can claim to hold a key with a small k; so no key is
//! believed while as many nodes as the group's k, at least one of them honest, give another key of the same name.

use std::collections::{BTreeMap, BTreeSet};

use theta_keyfiles::PublicKeyText as _;
use theta_names::NodeId;
use theta_schemes::keys::{AnyPublicKey, KeyId, KeyName};
use theta_wire::v1;

use crate::KeyDispute;

/// What the nodes have said about one key.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeMap<NodeId, Claim>);

/// What one node says.
#[derive(Debug)]
struct Claim {
    text: String,
    public: AnyPublicKey,
    /// Whether the node is one of the holders that it names.
    holds: bool,
}

impl Claim {
    fn words(&self) -> String {
        let (id, threshold) = (self.public.key_id().abbreviated(), self.public.threshold());
        let holder = if self.holds { "a holder" } else { "no holder" };
        format!("as {holder}, gives key {id} of {} of {}", threshold.k(), threshold.n())
    }
}

/// What follows from the answers.
#[derive(Debug)]
pub(crate) enum Belief {
    /// This is the key.
    Key(AnyPublicKey),
    /// No key is believed so far; this many equal answers of holders would be needed.
    Open(usize),
}

impl Told {
    /// Takes a node's answer. The error says what is wrong with it.
    pub(crate) fn take(
        &mut self,
        node: NodeId,
        name: &KeyName,
        answer: v1::GetPublicKeyResponse,
    ) -> Result<(), String> {
        let text = answer.public_key_file;
        let (given, public) = AnyPublicKey::from_text(&text).map_err(|error| error.to_string())?;
        if given != *name {
            return Err(format!("the key is named {given}"));
        }
        let holders = answer.info.map(|info| info.holders).unwrap_or_default();
        // One holder for each share, and no node twice.
        let mut listed = holders.clone();
        listed.sort_unstable();
        listed.dedup();
        if listed.len() != holders.len() || listed.len() != usize::from(public.threshold().n()) {
            return Err(format!("the key has {} shares, and {} holders", public.threshold().n(), listed.len()));
        }
        let holds = listed.contains(&u32::from(node.get()));
        self.0.insert(node, Claim { text, public, holds });
        Ok(())
    }

    /// What follows from the answers so far. `k` is the group's; `known` is the key of this name, or an older version of
    /// it, that this client knew before.
    pub(crate) fn belief(&self, k: usize, known: Option<&AnyPublicKey>) -> Belief {
        let mut texts: BTreeMap<&str, (&AnyPublicKey, usize)> = BTreeMap::new();
        let mut keys: BTreeMap<KeyId, usize> = BTreeMap::new();
        for claim in self.0.values() {
            texts.entry(&claim.text).or_insert((&claim.public, 0)).1 += usize::from(claim.holds);
            *keys.entry(*claim.public.key_id()).or_default() += 1;
        }
        let mut most = k;
        for (public, holders) in texts.into_values() {
            let own = usize::from(public.threshold().k());
            // A new version needs as many holders as the known version did: liars could give the new one any k.
            let before = known.filter(|known| known.key_id() != public.key_id());
            let needed = k.max(own).max(before.map_or(0, |known| usize::from(known.threshold().k())));
            let others: usize = keys.iter().filter(|(id, _)| *id != public.key_id()).map(|(_, nodes)| nodes).sum();
            if holders >= needed && others < k {
                return Belief::Key(public.clone());
            }
            most = most.max(needed);
        }
        Belief::Open(most)
    }

    /// What the answers say of who lies, while no key is believed. `k` is the group's.
    pub(crate) fn dispute(&self, k: usize) -> KeyDispute {
        let mut texts: BTreeSet<&str> = BTreeSet::new();
        // A key has one id in all of its sharings: who gives it in another state denies nothing.
        let mut tellers: BTreeMap<KeyId, Vec<NodeId>> = BTreeMap::new();
        for (node, claim) in &self.0 {
            texts.insert(&claim.text);
            tellers.entry(*claim.public.key_id()).or_default().push(*node);
        }
        let keys = tellers.len();
        // Those that hold it may all lie.
        let holders = self.0.values().map(|claim| usize::from(claim.public.threshold().n())).max();
        let (honest, others): (Vec<_>, Vec<_>) = tellers.into_values().partition(|nodes| nodes.len() >= k);
        match honest.len() {
            _ if texts.len() < 2 => match holders {
                Some(holders) if holders < k => KeyDispute::FewHolders(holders),
                _ => KeyDispute::Unopposed,
            },
            _ if keys < 2 => KeyDispute::Changing,
            0 => KeyDispute::Open,
            1 => {
                let mut nodes = others.concat();
                nodes.sort_unstable();
                KeyDispute::Contradicted(nodes)
            }
            _ => KeyDispute::Changing,
        }
    }

    /// Each node's answer in a few words.
    pub(crate) fn words(&self) -> impl Iterator<Item = (NodeId, String)> {
        self.0.iter().map(|(node, claim)| (*node, claim.words()))
    }

    /// The nodes that give another key than this one, and their answers in a few words.
    pub(crate) fn against(&self, believed: &AnyPublicKey) -> impl Iterator<Item = (NodeId, String)> {
        let believed = *believed.key_id();
        let others = self.0.iter().filter(move |(_, claim)| *claim.public.key_id() != believed);
        others.map(|(node, claim)| (*node, claim.words()))
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
    use theta_schemes::{Suite, keys::deal_any};
    use theta_sharing::Threshold;

    use super::*;

    fn key(k: u16, n: u16, seed: u64) -> AnyPublicKey {
        deal_any(Suite::Bls04MinPk, Threshold::new(k, n).unwrap(), &mut ChaCha20Rng::seed_from_u64(seed)).0
    }

    fn tell(told: &mut Told, nodes: &[u16], key: &AnyPublicKey, holders: &[u32]) {
        let name: KeyName = "seal".parse().unwrap();
        for node in nodes {
            let info = v1::KeyInfo { holders: holders.to_vec(), ..Default::default() };
            let answer = v1::GetPublicKeyResponse { info: Some(info), public_key_file: key.to_text(&name) };
            told.take(NodeId::try_from(*node).unwrap(), &name, answer).unwrap();
        }
    }

    fn believes(told: &Told, known: Option<&AnyPublicKey>, key: &AnyPublicKey) -> bool {
        matches!(told.belief(2, known), Belief::Key(believed) if believed.key_id() == key.key_id())
    }

    /// Two liars in a group of 2 of 5 give another public key for a key of 4 of 5, with the same k or with a small one.
    #[test]
    fn two_liars_are_not_believed_about_a_key_of_four() {
        let (truth, false_one, small) = (key(4, 5, 1), key(4, 5, 2), key(2, 2, 3));
        let everybody = [1, 2, 3, 4, 5];
        for (lie, holders) in [(&false_one, &everybody[..]), (&small, &[1, 2])] {
            let mut told = Told::default();
            tell(&mut told, &[1, 2], lie, holders);
            if lie.threshold().k() == 4 {
                assert!(!believes(&told, None, lie), "two are not four");
            }
            // A client that knew the key before needs no other node: two are too few for another key.
            assert!(!believes(&told, Some(&truth), lie));
            tell(&mut told, &[3, 4, 5], &truth, &everybody);
            assert!(matches!(told.belief(2, None), Belief::Open(4)), "three honest ones contradict, and are not four");
        }
    }

    #[test]
    fn as_many_holders_as_the_key_takes_are_believed_whatever_one_liar_tells() {
        let (truth, lie) = (key(4, 5, 1), key(2, 2, 3));
        let mut told = Told::default();
        tell(&mut told, &[1], &lie, &[1, 2]);
        tell(&mut told, &[2, 3, 4], &truth, &[1, 2, 3, 4, 5]);
        assert!(!believes(&told, None, &truth));
        tell(&mut told, &[5], &truth, &[1, 2, 3, 4, 5]);
        assert!(believes(&told, None, &truth));
    }

    /// A key of 2 of 2 in a group of 4 of 5, three nodes of which may lie: its holders agree, and are two.
    #[test]
    fn a_key_of_fewer_holders_than_may_lie_is_not_believed_and_its_file_is_asked_for() {
        let small = key(2, 2, 1);
        let mut told = Told::default();
        tell(&mut told, &[1, 2], &small, &[1, 2]);
        assert!(matches!(told.belief(4, None), Belief::Open(4)));
        let dispute = told.dispute(4);
        assert_eq!(dispute, KeyDispute::FewHolders(2));
        assert!(dispute.to_string().contains("theta keys show NAME --file"), "{dispute}");
        assert_eq!(told.dispute(2), KeyDispute::Unopposed);
    }

    fn nodes(numbers: &[u16]) -> Vec<NodeId> {
        numbers.iter().map(|number| NodeId::try_from(*number).unwrap()).collect()
    }

    /// In a group of 3 of 4 two liars leave two honest nodes, too few to confirm anything, and too few to be told from liars.
    #[test]
    fn who_lies_is_named_where_it_follows_and_else_nobody() {
        let (truth, lie, everybody) = (key(4, 4, 1), key(4, 4, 2), [1, 2, 3, 4]);
        let mut told = Told::default();
        tell(&mut told, &[3, 4], &truth, &everybody);
        assert_eq!(told.dispute(3), KeyDispute::Unopposed);
        tell(&mut told, &[2], &lie, &everybody);
        assert_eq!(told.dispute(3), KeyDispute::Open, "two may lie");
        tell(&mut told, &[1], &truth, &everybody);
        assert!(matches!(told.belief(3, None), Belief::Open(4)), "it takes all four");
        assert_eq!(told.dispute(3), KeyDispute::Contradicted(nodes(&[2])));
        assert_eq!(told.dispute(1), KeyDispute::Changing, "nobody lies");
        assert_eq!(told.against(&truth).map(|(node, _)| node).collect::<Vec<_>>(), nodes(&[2]));
        assert_eq!(told.against(&lie).map(|(node, _)| node).collect::<Vec<_>>(), nodes(&[1, 3, 4]));
    }

    /// One node gives the key as it was before its shares moved, or as it is after that: the key is the same, and nobody has lied.
    #[test]
    fn one_key_in_different_sharings_is_changing() {
        let everybody = [1, 2, 3, 4];
        // The secret is drawn first.
        let (before, after) = (key(3, 4, 1), key(4, 4, 1));
        assert!(before.key_id() == after.key_id() && before.to_bytes() != after.to_bytes());
        let mut told = Told::default();
        tell(&mut told, &[1, 2, 3], &before, &everybody);
        tell(&mut told, &[4], &after, &everybody);
        assert_eq!(told.dispute(3), KeyDispute::Changing);
        tell(&mut told, &[3], &after, &everybody);
        assert_eq!(told.dispute(3), KeyDispute::Changing, "two and two");
        // Another key is denied by all of these, whatever their state.
        tell(&mut told, &[2], &key(4, 4, 2), &everybody);
        assert_eq!(told.dispute(3), KeyDispute::Contradicted(nodes(&[2])));
    }

    /// Those that stand alone are named together.
    #[test]
    fn several_that_contradict_are_named() {
        let (truth, everybody) = (key(5, 5, 1), [1, 2, 3, 4, 5]);
        let mut told = Told::default();
        tell(&mut told, &[5], &key(5, 5, 2), &everybody);
        tell(&mut told, &[1], &key(5, 5, 3), &everybody);
        tell(&mut told, &[2, 3, 4], &truth, &everybody);
        let dispute = told.dispute(3);
        assert_eq!(dispute, KeyDispute::Contradicted(nodes(&[1, 5])));
        assert!(dispute.to_string().starts_with("nodes 1 and 5 contradict so many"), "{dispute}");
        assert!(dispute.to_string().ends_with("lying, broken, behind or ahead"), "{dispute}");
    }

    #[test]
    fn who_holds_no_share_is_not_counted() {
        let truth = key(2, 3, 1);
        let mut told = Told::default();
        tell(&mut told, &[4, 5, 1], &truth, &[1, 2, 3]);
        assert!(!believes(&told, None, &truth));
        tell(&mut told, &[3], &truth, &[1, 2, 3]);
        assert!(believes(&told, None, &truth));
    }

    #[test]
    fn an_answer_has_as_many_holders_as_shares() {
        let (name, truth) = ("seal".parse().unwrap(), key(2, 3, 1));
        let text = truth.to_text(&name);
        for holders in [vec![], vec![1, 2], vec![1, 1, 2], vec![1, 2, 3, 4]] {
            let info = Some(v1::KeyInfo { holders, ..Default::default() });
            let answer = v1::GetPublicKeyResponse { info, public_key_file: text.clone() };
            assert!(Told::default().take(NodeId::try_from(1).unwrap(), &name, answer).is_err());
        }
    }
}
