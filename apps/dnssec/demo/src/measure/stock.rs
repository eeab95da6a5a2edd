//! Presignatures that nodes keep: how many, and whether they are there.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use theta::exit::Failure;
use theta_cluster::Cluster;

/// How long nodes may take to make them.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long is waited before it is looked again.
const GLANCE: Duration = Duration::from_millis(200);
/// The line of `node.toml` that says how many there should be.
const SETTING: &str = "nonces_per_peer = ";

/// Has nodes that are not started yet keep so many for each key.
pub(super) fn keep(group: &Cluster, count: u16) -> Result<(), Failure> {
    for folder in group.node_dirs() {
        let file = folder.join("node.toml");
        let text = fs::read_to_string(&file).map_err(|error| Failure::reading(&file, &error))?;
        let line =
            |line: &str| if line.starts_with(SETTING) { format!("{SETTING}{count}\n") } else { format!("{line}\n") };
        let text: String = text.lines().map(line).collect();
        fs::write(&file, text).map_err(|error| Failure::writing(&file, &error))?;
    }
    Ok(())
}

/// Waits until there are as many at all nodes as there should be; `status` is what `theta status --json` prints.
pub(super) fn await_full(status: impl Fn() -> Result<String, Failure>) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    while !is_full(&serde_json::from_str(&status()?).map_err(Failure::internal)?) {
        if Instant::now() > deadline {
            return Err(Failure::NoAnswer("the nodes do not make their presignatures in time".to_owned()));
        }
        thread::sleep(GLANCE);
    }
    Ok(())
}

fn is_full(status: &Value) -> bool {
    let stocks = status.get("stocks").and_then(Value::as_array).into_iter().flatten();
    stocks.filter(|stock| stock.get("kind").and_then(Value::as_str) == Some("presignatures")).all(|stock| {
        let level = stock.get("level").and_then(Value::as_u64);
        let ready = stock.get("ready").and_then(Value::as_object).into_iter().flatten();
        ready.map(|(_, ready)| ready.as_u64()).all(|ready| ready >= level)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_nodes_have_to_have_all() {
        let status = |kind: &str, one: u64, two: u64| {
            is_full(&json!({"stocks": [{"kind": kind, "level": 32, "ready": {"1": one, "2": two}}]}))
        };
        assert!(status("presignatures", 32, 96) && !status("presignatures", 96, 31) && status("commitments", 0, 0));
        assert!(is_full(&json!({})));
    }
}
