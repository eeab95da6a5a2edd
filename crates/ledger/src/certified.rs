//! Entries with the votes that decided them.

use theta_agreement::VoteCertificate;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::warrant::{MOST_WARRANT, MOST_WARRANTS};
use crate::{Entry, MOST_ENTRY, Warrant};

/// An entry, and the precommits of a quorum for it: convinces whoever knows the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedEntry {
    /// The entry.
    pub entry: Entry,
    /// The votes.
    pub certificate: VoteCertificate,
    /// Under which machines voted that are no members' yet, if some did: as few as it takes, [`MOST_WARRANTS`] at most.
    pub warrants: Vec<Warrant>,
}

impl CertifiedEntry {
    /// The longest in bytes, in a group of so many nodes.
    #[must_use]
    pub const fn longest(nodes: usize) -> usize {
        MOST_ENTRY + MOST_WARRANTS * (MOST_WARRANT + 4) + 128 + 66 * nodes
    }

    /// `[entry]`, `[certificate]`, their number (1) and each `[warrant]`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = Writer::default().bytes(&self.entry.encode()).bytes(&self.certificate.encode());
        let writer = writer.u8(u8::try_from(self.warrants.len()).unwrap_or(u8::MAX));
        self.warrants.iter().fold(writer, |writer, warrant| writer.bytes(&warrant.encode())).finish()
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
        let count = usize::from(reader.u8()?);
        if count > MOST_WARRANTS {
            return Err(DecodeError::Field("the number of warrants"));
        }
        let warrants = (0..count).map(|_| Warrant::decode(reader.bytes_within(MOST_WARRANT)?));
        let warrants = warrants.collect::<Result<_, _>>()?;
        Ok(Self { entry, certificate, warrants })
    }
}
