//! A validator's configuration.

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use serde::{Deserialize, Serialize};
use theta::exit::Failure;

use super::Behaviour;

/// What a validator reads when it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidatorFile {
    /// The number of the group's node that stands beside it.
    pub node: u16,
    /// Its place in the genesis, from 0.
    pub place: u16,
    /// The secret of the key with which it says what cannot be opened, in 64 hexadecimal digits.
    pub secret: String,
    /// The address of its own CometBFT's RPC.
    pub rpc: String,
    /// Whether it is the host of its node, which its node has to know: `[order]` in `node.toml`.
    #[serde(default)]
    pub order: bool,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// The secret of the account that a dishonest one trades with.
    pub account: Option<String>,
}

impl ValidatorFile {
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))?;
        serde_json::from_str(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    }

    /// Writes it where its owner alone can read it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(Failure::internal)?;
        write_secret(path, text.as_bytes())
    }
}

/// Writes a file that its owner alone can read.
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(|error| Failure::writing(path, &error))
}

/// The bytes of a secret in hexadecimal digits.
pub(crate) fn secret_of(text: &str) -> Result<[u8; 32], Failure> {
    let mut secret = [0; 32];
    let decoded = hex::decode_to_slice(text, &mut secret);
    decoded.map_err(|_| Failure::Usage("a secret has 64 hexadecimal digits".to_owned())).map(|()| secret)
}
