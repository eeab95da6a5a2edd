//! Entries with the votes that decided them.

use theta_agreement::VoteCertificate;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::warrant::MOST_WARRANT;
use crate::{Entry, MOST_ENTRY, Warrant};

/// An entry, and the precommits of a quorum for it: convinces whoever knows the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedEntry {
    /// The entry.
    pub entry: Entry,
    /// The votes.
    pub certificate: VoteCertificate,
    /// Under which machines voted that are no members' yet, if some did.
    pub warrant: Option<Box<Warrant>>,
}

impl CertifiedEntry {
    /// The longest in bytes, in a group of so many nodes.
    #[must_use]
    pub const fn longest(nodes: usize) -> usize {
        MOST_ENTRY + MOST_WARRANT + 128 + 66 * nodes
    }

    /// `[entry]`, `[certificate]`, (0, or 1 and `[warrant]`).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = Writer::default().bytes(&self.entry.encode()).bytes(&self.certificate.encode());
        writer.option(self.warrant.as_ref(), |writer, warrant| writer.bytes(&warrant.encode())).finish()
    }

    /// Reads what [`CertifiedEntry::encode`] wrote. The certificate may still be false.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let certified = Self::read(&mut reader)?;
        reader.end(certified)
    }

    /// Reads one of several.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let entry = Entry::decode(reader.bytes()?)?;
        let certificate = VoteCertificate::decode(reader.bytes()?);
        let certificate = certificate.map_err(|_| DecodeError::Field("a certificate"))?;
        let warrant = reader.option(|reader| Warrant::decode(reader.bytes_within(MOST_WARRANT)?).map(Box::new))?;
        Ok(Self { entry, certificate, warrant })
    }
}
