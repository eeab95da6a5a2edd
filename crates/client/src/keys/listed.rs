//! The lists of keys that nodes give.

use std::collections::BTreeSet;

use bytes::Bytes;
use theta_names::{KeyName, NodeId, SuiteName, Version};
use theta_wire::v1;
use tonic::Status;

use crate::{connection::bounded, error::text::one_line};

/// The most versions of keys in a node's list. Honest nodes have thousands, as a group that signs with a key for each object does, and an entry that
/// says nothing takes some hundred bytes here.
pub(super) const MOST_LISTED: usize = 1 << 16;
/// The longest such list, in bytes: one with as many versions as may be known of 120 bytes each.
pub(super) const MOST_LISTED_BYTES: usize = 8 << 20;
/// The longest answer that tells a public key, in bytes.
pub(super) const MOST_TOLD_BYTES: usize = 4 << 20;
/// The most fields of an entry: a holder may be one.
const MOST_FIELDS: usize = 4096;
/// The most fields of all entries together: one of two bytes, such as an empty quarantine, takes some fifty times as much here.
const MOST_FIELDS_OF_ALL: usize = 1 << 20;

/// A version of a key, and the nodes that list it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedKey {
    /// The version as the nodes describe it, except `held`, `generation`, `stock` and `quarantined`: see the fields below. Names and words in it
    /// have no characters but those of names and words.
    pub info: v1::KeyInfo,
    /// The nodes that list it in exactly this form, each once.
    pub nodes: Vec<NodeId>,
    /// Those of them that hold a share of it.
    pub held: Vec<NodeId>,
    /// The highest generation of the key that one of them reports; that of `info` is 0.
    pub generation: u64,
    /// What they have ahead of signatures, those of them that keep anything.
    pub stocks: Vec<(NodeId, v1::Stock)>,
    /// The sets of holders with which they compute no more.
    pub quarantined: Vec<(NodeId, v1::Quarantine)>,
}

/// What differs by node and is no disagreement: whether it holds its share, which changes it has seen, what it has in stock, and what it has noticed.
pub(super) struct Own {
    held: bool,
    generation: u64,
    stock: Option<v1::Stock>,
    quarantined: Vec<v1::Quarantine>,
}

impl Own {
    /// Takes it out of the description.
    pub(super) fn of(info: &mut v1::KeyInfo) -> Self {
        Self {
            held: std::mem::take(&mut info.held),
            generation: std::mem::take(&mut info.generation),
            stock: info.stock.take(),
            quarantined: std::mem::take(&mut info.quarantined),
        }
    }
}

impl ListedKey {
    /// Of the version as this node describes it, what others may describe otherwise.
    pub(super) fn add(&mut self, node: NodeId, own: Own) {
        self.generation = self.generation.max(own.generation);
        self.nodes.push(node);
        self.stocks.extend(own.stock.map(|stock| (node, stock)));
        self.quarantined.extend(own.quarantined.into_iter().map(|it| (node, it)));
        if own.held {
            self.held.push(node);
        }
    }
}

/// A node's list, as it came: of each version what the node says of it first. Who says the same twice does not count twice, and who says two
/// things of one version is heard once.
pub(super) fn parse(entries: Vec<Bytes>) -> Result<Vec<v1::KeyInfo>, Status> {
    let mut seen = BTreeSet::new();
    let (mut keys, mut fields) = (Vec::with_capacity(entries.len()), 0_usize);
    for entry in entries {
        let (info, its_fields) = bounded::counted_entry::<v1::KeyInfo, MOST_FIELDS>(entry)?;
        fields = fields.saturating_add(its_fields);
        if fields > MOST_FIELDS_OF_ALL {
            return Err(Status::internal(format!("its list has more than {MOST_FIELDS_OF_ALL} parts")));
        }
        let info = clean(info).ok_or_else(|| Status::internal("it lists a key that there cannot be"))?;
        if seen.insert((info.name.clone(), info.version)) {
            keys.push(info);
        }
    }
    Ok(keys)
}

/// The entry, if there can be such a version of a key: each of its names is one, and texts for people are fit to be shown.
fn clean(mut info: v1::KeyInfo) -> Option<v1::KeyInfo> {
    info.name.parse::<KeyName>().ok()?;
    Version::new(info.version)?;
    // Another release may have words that this one does not know. All of them look like the names of suites.
    let words = [&info.suite, &info.purpose, &info.delivery, &info.state];
    words.into_iter().all(|word| word.is_empty() || word.parse::<SuiteName>().is_ok()).then_some(())?;
    (info.scheme, info.group) = (one_line(&info.scheme), one_line(&info.group));
    if let Some(stock) = &mut info.stock {
        stock.kind = one_line(&stock.kind);
    }
    for quarantine in &mut info.quarantined {
        quarantine.phase = one_line(&quarantine.phase);
    }
    Some(info)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn listed(name: &str, version: u32, state: &str) -> v1::KeyInfo {
        v1::KeyInfo { name: name.to_owned(), version, state: state.to_owned(), ..Default::default() }
    }

    fn parsed(keys: &[v1::KeyInfo]) -> Result<Vec<v1::KeyInfo>, Status> {
        parse(keys.iter().map(|key| key.encode_to_vec().into()).collect())
    }

    #[test]
    fn a_node_says_one_thing_of_a_version() {
        let keys = [listed("seal", 1, "active"), listed("seal", 1, "destroyed"), listed("seal", 2, "active")];
        let told = parsed(&keys).unwrap();
        assert_eq!(
            told.iter().map(|key| (key.version, &*key.state)).collect::<Vec<_>>(),
            [(1, "active"), (2, "active")]
        );
    }

    /// Entries of two hundred empty quarantines each: no entry has too many parts, and all together have.
    #[test]
    fn a_list_of_more_parts_than_there_can_be_is_not_read() {
        let full = |version| {
            let quarantined = vec![v1::Quarantine::default(); 200];
            v1::KeyInfo { quarantined, ..listed("seal", version, "active") }
        };
        let keys: Vec<_> = (1..=5_000).map(full).collect();
        assert!(parsed(&keys).is_ok());
        let keys: Vec<_> = (1..=5_500).map(full).collect();
        assert!(parsed(&keys).unwrap_err().message().contains("parts"));
    }

    #[test]
    fn what_cannot_be_a_key_is_nobodys() {
        for wrong in [listed("no\u{1b}[2J", 1, "active"), listed("seal", 0, "active"), listed("seal", 1, "act\nive")] {
            assert!(parsed(&[wrong]).is_err());
        }
        let suite = "sg02\u{202e}".to_owned();
        assert!(parsed(&[v1::KeyInfo { suite, ..listed("seal", 1, "active") }]).is_err());
        let quarantined = vec![v1::Quarantine { phase: "a\u{1b}[2Jcheck".to_owned(), ..Default::default() }];
        let told = parsed(&[v1::KeyInfo { quarantined, ..listed("seal", 1, "active") }]).unwrap();
        assert_eq!(told[0].quarantined[0].phase, "a [2Jcheck");
    }
}
