//! The configuration of a node that is in no group yet: all of `node.toml` but the node's number.

use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use theta_names::NodeId;
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
        "this node is in no group yet: send {} to whoever puts the group together, then run theta node join --dir {}",
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
