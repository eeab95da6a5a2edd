//! What policies and configurations of a group made for a measurement contain beyond the generated ones.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use theta::exit::Failure;

/// When what a request lets out may leave a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Record {
    /// After its record is on the disk
    First,
    /// At once: a crash may lose the last records
    Soon,
}

/// Rules of the group that `--local` makes.
#[derive(Debug, Args)]
pub(crate) struct LocalRules {
    /// Sign under a signing rule: the first eight bytes of each message are its slot, and at most one message of a slot is
    /// ever signed, so that nodes certify the slot first
    #[arg(long, requires = "local")]
    slots: bool,
    /// When what a request lets out may leave a node
    #[arg(long, value_enum, default_value = "first", requires = "local")]
    record: Record,
    /// Put on record which FROST nonces are used up before they sign
    #[arg(long, requires = "local")]
    burn_nonces: bool,
}

impl LocalRules {
    /// Changes policy and configuration of every node. No node may be running.
    pub(crate) fn write(&self, nodes: &[PathBuf]) -> Result<(), Failure> {
        for dir in nodes {
            change(&dir.join("policy.toml"), |text| self.apply(text))?;
            if self.burn_nonces {
                change(&dir.join("node.toml"), |text| text.replacen("burn_nonces = false", "burn_nonces = true", 1))?;
            }
        }
        Ok(())
    }

    fn apply(&self, policy: &str) -> String {
        let mut text = policy.to_owned();
        if self.record == Record::Soon {
            text = text.replacen("effect = \"allow\"\n", "effect = \"allow\"\nrecord = \"soon\"\n", 1);
        }
        if self.slots {
            let rule = "[[signing]]\nname = \"numbers\"\nkeys = [\"*\"]\nslot = \"message-prefix\"\n\n[[rule]]";
            text = text.replacen("[[rule]]", rule, 1);
        }
        text
    }
}

fn change(path: &Path, text: impl FnOnce(&str) -> String) -> Result<(), Failure> {
    let before = fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))?;
    fs::write(path, text(&before)).map_err(|error| Failure::writing(path, &error))
}
