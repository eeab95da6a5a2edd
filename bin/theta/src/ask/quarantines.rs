//! Sets of holders that compute no more together, because somebody cheated, as `theta status` and `theta keys show --live` show them.

use std::io;

use serde::Serialize;
use theta_client::ListedKey;

use crate::{connect, output::BAD};

/// One set of holders of one version of a key, at a node that noticed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct QuarantineView {
    key: String,
    version: u32,
    /// The node that noticed.
    noticed_by: u16,
    /// The holders, that node among them.
    nodes: Vec<u32>,
    /// What was found false.
    phase: String,
    /// The node that cheated, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    culprit: Option<u32>,
}

/// Those of all keys.
pub(crate) fn of<'a>(listed: impl IntoIterator<Item = &'a ListedKey>) -> Vec<QuarantineView> {
    let views = listed.into_iter().flat_map(|ListedKey { info, quarantined, .. }| {
        quarantined.iter().map(|(node, it)| QuarantineView {
            key: info.name.clone(),
            version: info.version,
            noticed_by: node.get(),
            nodes: it.nodes.clone(),
            phase: it.phase.clone(),
            culprit: (it.culprit > 0).then_some(it.culprit),
        })
    });
    views.collect()
}

/// Writes a line for each.
pub(crate) fn write(views: &[QuarantineView], out: &mut dyn io::Write) -> io::Result<()> {
    for QuarantineView { key, version, noticed_by, nodes, phase, culprit } in views {
        let nodes: Vec<u16> = nodes.iter().filter_map(|node| u16::try_from(*node).ok()).collect();
        let among = connect::nodes(&nodes);
        let (who, what) = match culprit {
            Some(cheat) => (format!("node {cheat}"), format!("node {noticed_by} signs no more with it")),
            None => ("somebody".to_owned(), format!("{among} sign no more together")),
        };
        writeln!(
            out,
            "{BAD}key {key}@{version}: {who} cheated, says node {noticed_by} ({phase}); {what} until the key has new shares: theta keys \
             refresh {key}{BAD:#}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use theta_wire::v1::{KeyInfo, Quarantine};

    use super::*;

    #[test]
    fn a_line_names_key_nodes_phase_and_the_way_out() {
        let node = theta_names::NodeId::try_from(2).unwrap();
        let info = KeyInfo { name: "gold".to_owned(), version: 3, ..KeyInfo::default() };
        let quarantine = |culprit| Quarantine { nodes: vec![1, 2], phase: "a check".to_owned(), culprit };
        let quarantined = vec![(node, quarantine(1)), (node, quarantine(0))];
        let listed = ListedKey { info, nodes: vec![node], quarantined, ..ListedKey::default() };
        let mut out = Vec::new();
        write(&of([&listed]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for words in
            ["key gold@3: node 1 cheated, says node 2 (a check)", "somebody cheated", "theta keys refresh gold"]
        {
            assert!(text.contains(words), "{text}");
        }
    }
}
