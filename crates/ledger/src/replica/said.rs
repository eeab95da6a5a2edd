//! What a replica has said, as its store keeps it.

use theta_names::codec::{DecodeError, Reader, Writer};

use super::message::{Polka, Vote, read_polka, write_polka};

/// A proposal or vote of this node's own: durable before it leaves, so that after a restart nothing else is said in its place. The
/// records of a height may go when its entry is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The height that it is about.
    pub height: u64,
    pub(super) vote: Vote,
    /// Of a precommit for a value: what locked this node on it.
    pub(super) polka: Option<Polka>,
}

impl Said {
    /// Height (8), vote, (0, or 1 and certificate and value).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = self.vote.write(Writer::default().u64(self.height));
        writer.option(self.polka.as_ref(), write_polka).finish()
    }

    /// Reads what [`Said::encode`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (height, vote) = (reader.u64()?, Vote::read(&mut reader)?);
        let polka = reader.option(read_polka)?;
        reader.end(Self { height, vote, polka })
    }
}
