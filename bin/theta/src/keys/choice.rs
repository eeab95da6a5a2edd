//! Which public key a command uses that needs no node.

use std::path::PathBuf;

use clap::Args;
use theta_client::KeyState;
use theta_schemes::Purpose;
use theta_statements::UnixTime;

use super::{Keyring, NamedKey};
use crate::{connect::ClientDir, exit::Failure, output};

/// Which public key to use for work that needs no node.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Name of the key, or NAME@VERSION [default: the usual one for the purpose]
    #[arg(long, value_name = "NAME", conflicts_with = "public_key")]
    key: Option<String>,
    /// File of the public key, as theta keys show --file prints it; no client directory is needed then
    #[arg(long, value_name = "FILE")]
    public_key: Option<PathBuf>,
    #[command(flatten)]
    client: ClientDir,
}

impl KeyArgs {
    /// The key to use.
    pub(crate) fn choose(&self, purpose: Purpose) -> Result<NamedKey, Failure> {
        match self.named_file(purpose)? {
            Some(key) => Ok(key),
            None => self.client.look_up(self.key.as_deref(), |keyring| keyring.choose(self.key.as_deref(), purpose)),
        }
    }

    fn named_file(&self, purpose: Purpose) -> Result<Option<NamedKey>, Failure> {
        let key = self.public_key.as_deref().map(NamedKey::read).transpose()?;
        key.as_ref().map_or(Ok(()), |key| key.check_purpose(purpose))?;
        Ok(key)
    }

    /// The version and sharing of the key for which a check succeeds, as far as this client knows, or the nodes tell that can be reached.
    pub(crate) fn fitting<E>(&self, key: &NamedKey, check: impl Fn(&NamedKey) -> Result<(), E>) -> Result<NamedKey, E> {
        if self.public_key.is_some() {
            return check(key).map(|()| key.clone());
        }
        let first = match self.client.keyring().fitting(key, &check) {
            Ok(found) => return Ok(found),
            Err(first) => first,
        };
        self.client.try_anew(Some(key.name.as_str()), |keyring| keyring.fitting(key, &check)).ok_or(first)
    }

    /// The key to encrypt to. What is encrypted to a key that was destroyed would be lost, so the nodes are asked, if they can be reached
    /// at once, what has become of it.
    pub(crate) fn choose_to_encrypt(&self) -> Result<NamedKey, Failure> {
        if let Some(key) = self.named_file(Purpose::Decrypt)? {
            return Ok(key);
        }
        let choose = |keyring: &Keyring| keyring.choose(self.key.as_deref(), Purpose::Decrypt);
        let (keyring, key, told) = self.client.ask_state(self.key.as_deref(), choose)?;
        let name = key.asked();
        let successor = keyring.successor(&key);
        if let Some(doom) = key.doomed {
            let when = UnixTime(doom.saturating_mul(1_000));
            return Err(Failure::Usage(format!(
                "the key {name} will be destroyed at {when}: then nobody could decrypt what is encrypted to it; theta keys enable \
                 {name} takes that back, and theta keys list shows other keys"
            )));
        }
        match (present(key.state, told), successor) {
            (Some(KeyState::Destroyed), _) => Err(Failure::Usage(format!(
                "the key {name} is destroyed: nobody could ever decrypt what is encrypted to it; theta keys list shows other keys, \
                 and theta keys create makes one"
            ))),
            (Some(KeyState::Retired | KeyState::Disabled), Some(newer)) => Err(Failure::Usage(format!(
                "{name} was rotated out, and takes nothing new: encrypt to {line}, which is version {newer}",
                line = key.name
            ))),
            (Some(KeyState::Retired), None) => Err(Failure::Usage(format!(
                "the key {name} is retired, and takes nothing new: theta keys rotate {line} makes its next version",
                line = key.name
            ))),
            (Some(KeyState::Disabled), None) => {
                output::diagnostic(
                    "warning",
                    &format!(
                        "the key {name} is disabled: nobody decrypts this until somebody enables it (theta keys enable {name})"
                    ),
                );
                Ok(key)
            }
            (Some(KeyState::Pending | KeyState::Active) | None, _) => Ok(key),
        }
    }
}

/// The state of a version by what the group has certified and what so many nodes tell that one of them is honest. What is certified as over stays
/// over, whatever nodes tell that are behind; else the nodes know what is new.
fn present(certified: Option<KeyState>, told: Option<KeyState>) -> Option<KeyState> {
    match (certified, told) {
        (Some(KeyState::Destroyed), _) | (_, Some(KeyState::Destroyed)) => Some(KeyState::Destroyed),
        (Some(KeyState::Retired), _) => Some(KeyState::Retired),
        (certified, told) => told.or(certified),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certified_as_over_is_over() {
        use KeyState::{Active, Destroyed, Disabled, Retired};
        for (certified, told, present_now) in [
            (Some(Destroyed), Some(Active), Some(Destroyed)),
            (Some(Retired), Some(Active), Some(Retired)),
            (Some(Retired), Some(Destroyed), Some(Destroyed)),
            (Some(Active), Some(Disabled), Some(Disabled)),
            (Some(Disabled), Some(Active), Some(Active)),
            (Some(Active), None, Some(Active)),
            (None, Some(Active), Some(Active)),
            (None, None, None),
        ] {
            assert_eq!(present(certified, told), present_now, "{certified:?}, {told:?}");
        }
    }
}
