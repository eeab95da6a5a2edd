//! Holders that came out of a ceremony without a share.
//!
//! The others do not wait long for one that is slow (`spec/ceremonies.md`, A new key): it takes over the public key and has no share until the
//! others compute it. Whoever asked for the ceremony hears of it at once, and not when the next node fails.

use std::collections::{BTreeMap, BTreeSet};

use theta_client::{CeremonyOutcome, ListedKey};
use theta_names::NodeId;

use crate::{
    connect::{self, Session},
    output,
};

/// Asks the nodes who has no share, and says so.
pub(super) fn tell(session: &Session, outcome: &CeremonyOutcome) -> Vec<u16> {
    let (listed, _) = session.block_on(session.client().list_keys());
    let silent: BTreeSet<u16> = outcome.silent.iter().map(|node| node.get()).collect();
    let about = (outcome.key.as_str(), outcome.version.get(), outcome.epoch.get());
    let k = usize::from(session.client().group().threshold());
    let left_out = left_out(&listed, k, about, &silent);
    if let Some(first) = left_out.first() {
        let have = if left_out.len() == 1 { "has" } else { "have" };
        let (who, key, client) = (connect::nodes(&left_out), &outcome.key, connect::client_option());
        output::note(format_args!(
            "{who} {have} no share of {key}: too slow for this ceremony, or away. The others compute it when the machine is up: theta keys \
             recover {key} --node {first}{client}"
        ));
    }
    left_out
}

/// The holders that list the sharing and have no share of it, and those that were silent and do not list it. About others nothing is known: they
/// may be about to finish. Who the holders are is what as many nodes list as the group's k: one of these is honest.
fn left_out(
    listed: &[ListedKey],
    k: usize,
    (key, version, epoch): (&str, u32, u32),
    silent: &BTreeSet<u16>,
) -> Vec<u16> {
    let is_meant = |listed: &&ListedKey| {
        let info = &listed.info;
        info.name == key && info.version == version && info.epoch == u64::from(epoch)
    };
    let meant: Vec<&ListedKey> = listed.iter().filter(is_meant).collect();
    let numbers = |of: fn(&ListedKey) -> &Vec<NodeId>| -> BTreeSet<u16> {
        meant.iter().flat_map(|listed| of(listed)).map(|node| node.get()).collect()
    };
    let (lists, has) = (numbers(|listed| &listed.nodes), numbers(|listed| &listed.held));
    let mut told: BTreeMap<BTreeSet<u16>, BTreeSet<NodeId>> = BTreeMap::new();
    for listed in &meant {
        let holders = listed.info.holders.iter().filter_map(|node| u16::try_from(*node).ok()).collect();
        told.entry(holders).or_default().extend(&listed.nodes);
    }
    let believed = told.into_iter().filter(|(_, nodes)| nodes.len() >= k).flat_map(|(holders, _)| holders);
    let lacks = |node: &u16| !has.contains(node) && (lists.contains(node) || silent.contains(node));
    believed.filter(lacks).collect::<BTreeSet<u16>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_wire::v1::KeyInfo;

    #[test]
    fn who_has_no_share_is_named_and_who_may_still_get_one_is_not() {
        let nodes = |numbers: &[u16]| numbers.iter().map(|node| (*node).try_into().unwrap()).collect();
        let info = KeyInfo {
            name: "zone".to_owned(),
            version: 1,
            epoch: 2,
            holders: vec![1, 2, 3, 4, 5],
            ..KeyInfo::default()
        };
        let listed = |info, by: &[u16], held: &[u16]| ListedKey {
            info,
            nodes: nodes(by),
            held: nodes(held),
            ..ListedKey::default()
        };
        let now = listed(info.clone(), &[1, 2, 4, 6], &[1, 2]);
        let before = listed(KeyInfo { epoch: 1, ..info.clone() }, &[3], &[3]);
        // Node 7 lists holders that there are not: node 6, which lists the key, and node 8, which is away.
        let lie = listed(KeyInfo { holders: vec![1, 2, 6, 7, 8], ..info }, &[7], &[]);
        let listed = [now, before, lie];
        let found = |silent: &[u16]| left_out(&listed, 2, ("zone", 1, 2), &silent.iter().copied().collect());
        assert_eq!(found(&[]), [4]);
        assert_eq!(found(&[5]), [4, 5]);
        assert_eq!(found(&[1, 3]), [3, 4]);
        assert_eq!(found(&[8]), [4]);
        assert_eq!(left_out(&listed, 2, ("zone", 2, 2), &BTreeSet::new()), [0_u16; 0]);
    }
}
