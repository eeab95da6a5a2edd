//! What nodes have ahead of signatures, as `theta status` shows it.

use std::{collections::BTreeMap, io};

use serde::Serialize;
use theta_client::ListedKey;

use crate::output::Table;

/// The stocks of one version of a key.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct StockView {
    key: String,
    version: u32,
    /// What is kept: presignatures or commitments.
    kind: String,
    /// How many there should be at a node.
    level: u64,
    /// How many there are, by node.
    ready: BTreeMap<u16, u64>,
}

/// The stocks of all keys, by key and version. Nodes that keep other numbers have entries of their own.
pub(super) fn of(listed: &[ListedKey]) -> Vec<StockView> {
    let mut views: BTreeMap<(&str, u32, &str, u64), BTreeMap<u16, u64>> = BTreeMap::new();
    for ListedKey { info, stocks, .. } in listed {
        for (node, stock) in stocks {
            let place = (info.name.as_str(), info.version, stock.kind.as_str(), stock.level);
            views.entry(place).or_default().insert(node.get(), stock.ready);
        }
    }
    let view = |((key, version, kind, level), ready): ((&str, u32, &str, u64), _)| StockView {
        key: key.to_owned(),
        version,
        kind: kind.to_owned(),
        level,
        ready,
    };
    views.into_iter().map(view).collect()
}

/// Writes a table of the stocks, if there are any.
pub(super) fn write(stocks: &[StockView], out: &mut dyn io::Write) -> io::Result<()> {
    if stocks.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["key", "made in advance", "level", "ready at nodes"], &[2]);
    for StockView { key, version, kind, level, ready } in stocks {
        let ready: Vec<String> = ready.iter().map(|(node, ready)| format!("{node}: {ready}")).collect();
        table.row([format!("{key}@{version}"), kind.clone(), level.to_string(), ready.join(", ")]);
    }
    table.write(out)
}

#[cfg(test)]
mod tests {
    use theta_wire::v1::{KeyInfo, Stock};

    use super::*;

    #[test]
    fn stocks_are_listed_by_key_and_node() {
        let node = |number: u16| theta_names::NodeId::try_from(number).unwrap();
        let stock = |ready| Stock { kind: "presignatures".to_owned(), ready, level: 32 };
        let info = KeyInfo { name: "gold".to_owned(), version: 2, ..KeyInfo::default() };
        let stocks = vec![(node(1), stock(32)), (node(3), stock(7))];
        let nodes = vec![node(1), node(3)];
        let without = ListedKey { info, nodes, ..ListedKey::default() };
        let with = ListedKey { stocks, ..without.clone() };
        let views = of(&[without, with]);
        let ready = BTreeMap::from([(1, 32), (3, 7)]);
        let (key, kind) = ("gold".to_owned(), "presignatures".to_owned());
        assert_eq!(views, [StockView { key, version: 2, kind, level: 32, ready }]);
        let mut out = Vec::new();
        write(&views, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("gold@2") && text.contains("1: 32, 3: 7"), "{text}");
        write(&[], &mut Vec::new()).unwrap();
    }
}
