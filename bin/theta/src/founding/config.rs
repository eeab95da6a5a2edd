//! The configuration of a node that is in no group yet: all of `node.toml` but the node's number.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use theta_ledger::founding::CardContent;
use theta_names::{Address, NodeId};
use theta_service::{NodeConfig, config::ListenConfig};

use super::CARD;
use crate::{
    exit::Failure,
    files::{self, Target},
    vault::SealWord,
};

/// What stands in the place of the number.
const NOT_YET: &str = "# This node's number: theta node join writes it here, and nothing runs before.";
const WRITTEN: &str = "# This node's number in the group file.";

/// Where a node listens that is reached there.
fn listen_for(address: &Address) -> SocketAddr {
    let ip = match address.host() {
        "localhost" => IpAddr::from(Ipv4Addr::LOCALHOST),
        host => host.parse().unwrap_or(IpAddr::from(Ipv4Addr::UNSPECIFIED)),
    };
    SocketAddr::new(ip, address.port())
}

/// Where a node listens that is reached at these addresses, and where it serves metrics then.
pub(super) fn listen_at(peer: &Address, api: &Address) -> ListenConfig {
    let next = api.port().checked_add(1).filter(|port| *port != peer.port());
    let metrics = next.map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    ListenConfig { peer: listen_for(peer), api: listen_for(api), metrics }
}

/// A configuration with any number.
pub(super) fn new(listen: ListenConfig, seal: &SealWord) -> NodeConfig {
    let mut config = NodeConfig::new(NonZeroU16::MIN, listen);
    config.store.sealing = seal.0.clone();
    config
}

/// Its text without the number.
pub(super) fn text(config: &NodeConfig) -> Result<String, Failure> {
    let text = config.to_toml().map_err(Failure::internal)?;
    let numbered = format!("{WRITTEN}\nid = {}\n", config.id);
    if !text.contains(&numbered) {
        return Err(Failure::internal("node.toml does not begin with its number"));
    }
    Ok(text.replacen(&numbered, &format!("{NOT_YET}\n"), 1))
}

/// The file in a node's directory.
pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join("node.toml")
}

/// The `node.toml` of a node that is in no group yet.
pub(super) struct Unjoined {
    file: PathBuf,
    text: String,
    config: NodeConfig,
}

impl Unjoined {
    pub(super) fn read(dir: &Path) -> Result<Self, Failure> {
        let file = file(dir);
        if !file.is_file() {
            return Err(Failure::Usage(format!(
                "{} is not a node's directory (it has no node.toml): theta node init makes one",
                dir.display()
            )));
        }
        let text = files::read_text(&file)?;
        if !is_unjoined(&text) {
            return Err(Failure::Usage(format!(
                "the node in {} is in a group already: theta node init makes another node, with keys of its own",
                dir.display()
            )));
        }
        let mut config = parse(&text, &file, NonZeroU16::MIN)?;
        config.resolve(dir);
        Ok(Self { file, text, config })
    }

    /// With any number; its paths are resolved.
    pub(super) const fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Writes the number, which makes it a node of a group.
    pub(super) fn number(&self, node: NodeId) -> Result<(), Failure> {
        let number = NonZeroU16::new(node.get()).ok_or_else(|| Failure::internal("node 0"))?;
        parse(&self.text, &self.file, number)?;
        let target = Target::choose(Some(&self.file), None)?;
        target.write(with_number(&self.text, number).as_bytes(), false)
    }
}

/// Whether a `node.toml` is that of a node in no group.
pub(super) fn is_unjoined_at(file: &Path) -> bool {
    files::read_text(file).is_ok_and(|text| is_unjoined(&text))
}

/// Makes a node that moves listen where it is reached now, if it has listened where it was reached before. Says what it did.
pub(super) fn move_listeners(file: &Path, before: &CardContent, after: &CardContent) -> Result<String, Failure> {
    let text = files::read_text(file)?;
    let (old, new) =
        (listen_at(&before.peer_address, &before.api_address), listen_at(&after.peer_address, &after.api_address));
    let mut lines = vec![("peer", old.peer, new.peer), ("api", old.api, new.api)];
    lines.extend(old.metrics.zip(new.metrics).map(|(old, new)| ("metrics", old, new)));
    let (mut edited, mut kept) = (text.clone(), Vec::new());
    for (field, old, new) in lines.into_iter().filter(|(_, old, new)| old != new) {
        let line = format!("\n{field} = \"{old}\"");
        if edited.matches(&line).count() == 1 {
            edited = edited.replacen(&line, &format!("\n{field} = \"{new}\""), 1);
        } else if field != "metrics" {
            kept.push(field);
        }
    }
    if edited != text {
        NodeConfig::parse(&with_number(&edited, NonZeroU16::MIN), file)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Target::choose(Some(file), None)?.write(edited.as_bytes(), false)?;
    }
    let file = file.display();
    Ok(match kept.as_slice() {
        [] => format!("the node listens at {} and {} from now on ({file})", new.peer, new.api),
        kept => format!(
            "{file} stays as it is in [listen] {}: see whether the node listens where it is reached",
            kept.join(" and ")
        ),
    })
}

fn is_unjoined(text: &str) -> bool {
    text.lines().any(|line| line == NOT_YET)
}

/// Everything else stays as its operator may have changed it meanwhile.
fn with_number(text: &str, number: NonZeroU16) -> String {
    text.replacen(NOT_YET, &format!("{WRITTEN}\nid = {number}"), 1)
}

fn parse(text: &str, file: &Path, number: NonZeroU16) -> Result<NodeConfig, Failure> {
    NodeConfig::parse(&with_number(text, number), file).map_err(|error| Failure::Usage(error.to_string()))
}

/// Refuses the `node.toml` of a node that is in no group yet, saying what to do.
pub(crate) fn refuse_unjoined(file: &Path) -> Result<(), Failure> {
    // What cannot be read is for whoever reads it next to tell.
    let Ok(text) = files::read_text(file) else { return Ok(()) };
    if !is_unjoined(&text) {
        return Ok(());
    }
    let dir = files::parent(file);
    Err(Failure::Usage(format!(
        "this node is in no group yet: send {} to whoever puts the group together, then run theta node join --dir {} FILE \
         --fingerprint ..., with the founding that comes back",
        dir.join(CARD).display(),
        dir.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_completes_a_configuration_and_changes_nothing_else() {
        let listen =
            ListenConfig { peer: "127.0.0.1:1".parse().unwrap(), api: "127.0.0.1:2".parse().unwrap(), metrics: None };
        let config = new(listen, &SealWord::default());
        let without = text(&config).unwrap();
        assert!(is_unjoined(&without) && NodeConfig::parse(&without, Path::new("x")).is_err());
        let edited = without.replace("io_threads = 2", "io_threads = 5");
        let joined = parse(&edited, Path::new("x"), NonZeroU16::new(7).unwrap()).unwrap();
        assert_eq!((joined.id.get(), joined.io_threads.get()), (7, 5));
        assert!(!is_unjoined(&with_number(&without, NonZeroU16::MIN)));
        assert_eq!(with_number(&without, NonZeroU16::MIN), config.to_toml().unwrap());
    }
}
