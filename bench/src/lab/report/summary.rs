//! What the rows of a ladder, and of a steady state, say together.

use super::super::{
    ladder::{Ladder, Step, of_machine, of_one_core},
    row::{Kind, Row},
};

/// The capacity of one key of a group.
#[derive(Debug)]
pub(super) struct Capacity<'a> {
    /// The row with the largest throughput.
    pub(super) best: &'a Row,
    pub(super) knee: Option<Step>,
    pub(super) usable: Option<Step>,
    /// CPU of a node for one request, in microseconds, at the largest throughput; without what it uses when it does nothing.
    pub(super) net_us: Option<f64>,
    /// What that implies, in requests a second: for a node with a core of its own; for this machine, whose cores all share.
    pub(super) of_core: Option<f64>,
    pub(super) of_machine: Option<f64>,
}

/// Different items in the order of their first appearance.
pub(super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

/// Rows of one kind with something of these kinds in common.
pub(super) fn of_kind(rows: &[Row], kind: Kind) -> Vec<&Row> {
    rows.iter().filter(|row| row.kind == kind).collect()
}

/// Each ladder, as its rows.
pub(super) fn ladders(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut ladders: Vec<Vec<&Row>> = Vec::new();
    for row in of_kind(rows, Kind::Capacity) {
        match ladders.iter_mut().find(|ladder| ladder.iter().any(|known| known.is_like(row))) {
            Some(ladder) => ladder.push(row),
            None => ladders.push(vec![row]),
        }
    }
    for ladder in &mut ladders {
        ladder.sort_by(|a, b| a.rate.unwrap_or(0.0).total_cmp(&b.rate.unwrap_or(0.0)));
    }
    ladders
}

impl<'a> Capacity<'a> {
    /// Of one ladder; `None` if nothing was answered.
    pub(super) fn of(rows: &[&'a Row], ladder: &Ladder) -> Option<Self> {
        let steps: Vec<Step> = rows.iter().filter_map(|row| Step::of(row)).collect();
        let by_throughput = |a: &&&Row, b: &&&Row| a.throughput.unwrap_or(0.0).total_cmp(&b.throughput.unwrap_or(0.0));
        let best = *rows.iter().max_by(by_throughput).filter(|row| row.throughput.is_some_and(|rate| rate > 0.0))?;
        let (net_us, idle) = (best.net_cpu_us(), best.node_idle_us_per_s.unwrap_or(0.0));
        let client = best.client_cpu_us.unwrap_or(0.0);
        Some(Self {
            best,
            knee: ladder.knee(&steps).copied(),
            usable: ladder.usable(&steps).copied(),
            net_us,
            of_core: net_us.and_then(|net| of_one_core(net, idle)),
            of_machine: net_us.and_then(|net| of_machine(f64::from(best.cores), f64::from(best.n), net, idle, client)),
        })
    }
}
