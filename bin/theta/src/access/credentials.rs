//! The secrets of clients.

use std::path::Path;

use theta_client::ClientFile;
use theta_network::{GeneratedIdentity, Identity, group::GroupClient};
use theta_statements::SigningKey;

use crate::{
    exit::Failure,
    files::{Source, new_directory, write_new},
};

/// The file name of the key with which a client signs requests.
pub(super) const REQUEST_KEY: &str = "request.key";

/// The secrets of a client.
pub(crate) struct Credentials {
    pub(super) identity: GeneratedIdentity,
    pub(super) request_key: SigningKey,
}

impl Credentials {
    /// Generates new secrets.
    pub(crate) fn generate(name: &str) -> Result<Self, Failure> {
        let identity = Identity::generate(name).map_err(Failure::internal)?;
        let request_key = SigningKey::generate(&mut crate::random::generator()?).map_err(Failure::internal)?;
        Ok(Self { identity, request_key })
    }

    /// The client as group files have it.
    pub(crate) fn group_client(&self, name: &str) -> GroupClient {
        GroupClient { name: name.to_owned(), certificate: self.identity.fingerprint }
    }

    /// The client as policy files have it.
    pub(crate) fn policy_lines(&self, name: &str) -> String {
        let certificate = [self.identity.fingerprint.to_string()];
        let mut lines = policy_client(name, "certificates", &certificate);
        lines.push_str(&format!("signing_keys = [\"{}\"]\n", self.request_key.verifying_key()));
        lines
    }

    /// Makes the client's directory, without the group file.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), Failure> {
        new_directory(dir)?;
        self.fill(dir)
    }

    /// Writes the files into an existing directory.
    fn fill(&self, dir: &Path) -> Result<(), Failure> {
        new_directory(&dir.join("keys"))?;
        write_new(&dir.join("client.crt"), self.identity.certificate_pem.as_bytes(), false)?;
        write_new(&dir.join("client.key"), self.identity.key_pem.as_bytes(), true)?;
        write_new(&dir.join(REQUEST_KEY), self.request_key.to_pem().expose().as_bytes(), true)
    }
}

/// The key that a client signs requests with, from its file or directory; `None` if it has none.
pub(crate) fn request_key(client: &Path) -> Result<Option<SigningKey>, Failure> {
    if client.is_file() {
        return Ok(ClientFile::load(client)?.signer(client)?);
    }
    let path = client.join(REQUEST_KEY);
    if path.is_file() { read_signing_key(&path).map(Some) } else { Ok(None) }
}

/// Reads a private key that signs requests or approvals.
pub(crate) fn read_signing_key(path: &std::path::Path) -> Result<SigningKey, Failure> {
    let secret = Source::open_private(path)?.read_secret(4096)?;
    let text = std::str::from_utf8(secret.expose()).unwrap_or_default();
    SigningKey::from_pem(text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The lines of a policy file that identify a client.
pub(crate) fn policy_client(name: &str, field: &str, credentials: &[String]) -> String {
    let quoted: Vec<String> = credentials.iter().map(|credential| format!("{credential:?}")).collect();
    format!("[[client]]\nname = {name:?}\n{field} = [{}]\n", quoted.join(", "))
}
