//! The helpers that agree with each other, which is no matter of the group.

use std::collections::{BTreeMap, BTreeSet};

use theta_rounds::PartyId;

use super::answer::{Masks, read_masks};
use crate::record::map_of;
use crate::statement::{Digest, Statement};

/// Helpers that all found each other's masks right, of those that have said which they found right. Those with the least agreement are left
/// out first; among equals, another one of the n members in each attempt.
pub(super) fn agreeing(
    mut masks: BTreeMap<PartyId, Digest>,
    checked: &[&Statement],
    (attempt, members): (u32, u32),
) -> Masks {
    let said = checked.iter().filter_map(|checked| Some((checked.author(), read_masks(checked.body()).ok()?)));
    let lists: BTreeMap<PartyId, BTreeSet<Digest>> =
        map_of(said.map(|(helper, list)| (helper, list.into_iter().map(|(_, digest)| digest).collect())).collect());
    masks.retain(|helper, _| lists.contains_key(helper));
    let turn = |helper: PartyId| (u32::from(helper.get()) + attempt).checked_rem(members);
    let trusts = |a: PartyId, mask: &Digest| lists.get(&a).is_some_and(|list| list.contains(mask));
    loop {
        let discord = |(helper, mask): (&PartyId, &Digest)| {
            let with = |(other, others): &(&PartyId, &Digest)| !trusts(**other, mask) || !trusts(*helper, others);
            (masks.iter().filter(with).count(), turn(*helper), *helper)
        };
        match masks.iter().map(discord).max() {
            Some((1.., _, worst)) => masks.remove(&worst),
            _ => return masks.into_iter().collect(),
        };
    }
}
