//! The CometBFT nodes: where the program is, and their directories.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use theta::exit::Failure;

use crate::market::Genesis;

/// The version that `cargo xtask chain` installs.
pub const COMETBFT: &str = "0.38.26";
/// The environment variable with the path of the program.
pub const PROGRAM: &str = "THETA_COMETBFT";

/// Ports of one CometBFT node, on loopback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) p2p: u16,
    pub(super) rpc: u16,
}

/// The program: as said, else `$THETA_COMETBFT`, else in PATH, else where `cargo xtask chain` installs it.
///
/// # Errors
/// [`Failure::Usage`] if it is nowhere.
pub fn find(said: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(program) = said.map(Path::to_owned).or_else(|| env::var_os(PROGRAM).map(PathBuf::from)) {
        return if runs(&program) {
            Ok(program)
        } else {
            Err(Failure::Usage(format!("{} is no CometBFT of version 0.38", program.display())))
        };
    }
    let caches = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = caches.or_else(|| env::home_dir().map(|home| home.join(".cache")));
    let kept = caches.map(|caches| caches.join(format!("thetacrypt/cometbft-{COMETBFT}/bin/cometbft")));
    let found = [Some(PathBuf::from("cometbft")), kept].into_iter().flatten().find(|program| runs(program));
    found.ok_or_else(|| {
        Failure::Usage(format!(
            "no cometbft {COMETBFT} is to be found: cargo xtask chain builds it (with Go), or set {PROGRAM} to its path"
        ))
    })
}

fn runs(program: &Path) -> bool {
    let output = Command::new(program).arg("version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with("0.38."))
}

/// Makes the directories of so many CometBFT nodes that trust each other's keys.
pub(super) fn make_homes(
    program: &Path,
    dir: &Path,
    chain: &str,
    genesis: &Genesis,
    ports: &[Ports],
    sockets: &[PathBuf],
) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(["testnet", "--v", &ports.len().to_string(), "--starting-ip-address", "127.0.0.1", "--o"]).arg(dir);
    let made = command.stdin(Stdio::null()).output();
    let made = made.map_err(|error| Failure::Failed(format!("{}: {error}", program.display())))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(Failure::Failed(format!("{} testnet: {said}", program.display())));
    }
    for (number, (own, socket)) in ports.iter().zip(sockets).enumerate() {
        let config = dir.join(format!("node{number}/config"));
        let file = config.join("config.toml");
        let text = read(&file)?;
        fs::write(&file, configured(&text, ports, own, socket)).map_err(|error| Failure::writing(&file, &error))?;
        let file = config.join("genesis.json");
        let mut value: Value = serde_json::from_str(&read(&file)?).map_err(Failure::internal)?;
        let fields = value.as_object_mut().ok_or_else(|| Failure::internal("a genesis that is no object"))?;
        fields.insert("chain_id".to_owned(), chain.into());
        fields.insert("app_state".to_owned(), serde_json::to_value(genesis).map_err(Failure::internal)?);
        fs::write(&file, value.to_string()).map_err(|error| Failure::writing(&file, &error))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| Failure::reading(file, &error))
}

/// CometBFT's own configuration with other addresses and shorter waits: a block in about half a second.
fn configured(text: &str, ports: &[Ports], own: &Ports, socket: &Path) -> String {
    let mut text =
        text.replace("proxy_app = \"tcp://127.0.0.1:26658\"", &format!("proxy_app = \"unix://{}\"", socket.display()));
    text = text.replace("laddr = \"tcp://127.0.0.1:26657\"", &format!("laddr = \"tcp://127.0.0.1:{}\"", own.rpc));
    text = text.replace("laddr = \"tcp://0.0.0.0:26656\"", &format!("laddr = \"tcp://127.0.0.1:{}\"", own.p2p));
    for (number, other) in ports.iter().enumerate() {
        // Numbers are under 250: a group on one machine is small.
        let theirs = format!("@127.0.0.{}:26656", number.saturating_add(1));
        text = text.replace(&theirs, &format!("@127.0.0.1:{}", other.p2p));
    }
    for (line, shorter) in [
        ("timeout_propose = \"3s\"", "timeout_propose = \"1s\""),
        ("timeout_propose_delta = \"500ms\"", "timeout_propose_delta = \"250ms\""),
        ("timeout_prevote = \"1s\"", "timeout_prevote = \"500ms\""),
        ("timeout_precommit = \"1s\"", "timeout_precommit = \"500ms\""),
        ("timeout_commit = \"1s\"", "timeout_commit = \"200ms\""),
        ("peer_gossip_sleep_duration = \"100ms\"", "peer_gossip_sleep_duration = \"10ms\""),
        ("flush_throttle_timeout = \"100ms\"", "flush_throttle_timeout = \"10ms\""),
        ("indexer = \"kv\"", "indexer = \"null\""),
        ("log_level = \"info\"", "log_level = \"error\""),
    ] {
        text = text.replace(line, shorter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_replaced() {
        let ports: Vec<Ports> = (0..2).map(|number| Ports { p2p: 100 + number, rpc: 200 + number }).collect();
        let text = "proxy_app = \"tcp://127.0.0.1:26658\"\nladdr = \"tcp://127.0.0.1:26657\"\nladdr = \"tcp://0.0.0.0:26656\"\n\
                    persistent_peers = \"a@127.0.0.1:26656,b@127.0.0.2:26656\"\n";
        let configured = configured(text, &ports, &ports[1], Path::new("/x/s"));
        assert_eq!(
            configured,
            "proxy_app = \"unix:///x/s\"\nladdr = \"tcp://127.0.0.1:201\"\nladdr = \"tcp://127.0.0.1:101\"\n\
             persistent_peers = \"a@127.0.0.1:100,b@127.0.0.1:101\"\n"
        );
    }
}
