//! What replicas say to each other.

use theta_agreement::{Ballot, SIGNATURE_LEN, Signature, VoteCertificate};
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::consent::{read_consents, write_consents};
use crate::sitting::MachineKey;
use crate::{Action, CertifiedEntry, Consent, MOST_ENTRY, Warrant};

/// The version of the encoding.
const FORMAT: u8 = 1;
/// Bytes of format and tag.
const HEAD: usize = 2;
/// Bytes of entries that travel in one message, but for a single one that is longer.
pub(super) const MESSAGE_BYTES: usize = 1 << 18;
/// The longest message in bytes: a proposal, with the prevotes of every node that there can be.
pub const MOST_MESSAGE: usize = 2 * MOST_ENTRY + (1 << 18) + 2 * 66 * 4096;
/// Proposals and votes in one message: what one member says in a view, and its votes of the one before.
const MOST_VOTES: usize = 5;

/// A proposal or vote of its sender, signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vote {
    pub(super) ballot: Ballot,
    pub(super) body: Vec<u8>,
    pub(super) signature: Signature,
}

/// A quorum of prevotes, and the value that they are for.
pub(super) type Polka = (VoteCertificate, Vec<u8>);

/// A message of one replica to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// How far the sender is, what it has drawn at its start, what it knows that the receiver has drawn at its own, and the highest
    /// height at which it may have precommitted an entry, if it knows; and which machine it is, by its key of ceremonies.
    Status { height: u64, session: u64, echo: Option<u64>, spoken: Option<u64>, machine: MachineKey },
    /// What the sender says in its view of the height that it decides, and the latest quorum of prevotes that it knows.
    Votes { height: u64, votes: Vec<Vote>, polka: Option<Polka> },
    /// Entries, one after the other.
    Entries(Vec<CertifiedEntry>),
    /// The question for entries after this height.
    Want { after: u64 },
    /// Something to decide, and the sender's consent to it if it has given one.
    Candidate { action: Action, reason: Vec<u8>, consents: Vec<Consent> },
    /// What lets another machine vote in the place of one that is gone.
    Warrant(Box<Warrant>),
    /// A quorum's votes for an entry of this height, which the receiver may have: of prevotes, or of precommits.
    Quorum { height: u64, certificate: VoteCertificate },
}

impl Vote {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        self.ballot.write(writer).bytes(&self.body).raw(&self.signature)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ballot = Ballot::read(reader).map_err(|_| DecodeError::Field("a ballot"))?;
        let body = reader.bytes()?.to_vec();
        Ok(Self { ballot, body, signature: reader.array::<SIGNATURE_LEN>()? })
    }
}

pub(super) fn write_polka(writer: Writer, polka: &Polka) -> Writer {
    writer.bytes(&polka.0.encode()).bytes(&polka.1)
}

pub(super) fn read_polka(reader: &mut Reader<'_>) -> Result<Polka, DecodeError> {
    Ok((read_certificate(reader)?, reader.bytes()?.to_vec()))
}

fn read_certificate(reader: &mut Reader<'_>) -> Result<VoteCertificate, DecodeError> {
    VoteCertificate::decode(reader.bytes()?).map_err(|_| DecodeError::Field("a certificate"))
}

impl Message {
    /// Whether bytes are said to be entries.
    pub(super) fn is_of_entries(bytes: &[u8]) -> bool {
        bytes.starts_with(&[FORMAT, 3])
    }

    /// Whether it is looked at whoever sent it: entries prove themselves, and a node that was away knows not all members.
    pub(super) const fn is_for_strangers(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::Entries(_) | Self::Want { .. } | Self::Warrant(_))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let writer = Writer::new(FORMAT);
        match self {
            Self::Status { height, session, echo, spoken, machine } => writer
                .u8(1)
                .u64(*height)
                .u64(*session)
                .option(*echo, Writer::u64)
                .option(*spoken, Writer::u64)
                .raw(machine),
            Self::Votes { height, votes, polka } => {
                let writer = writer.u8(2).u64(*height).option(polka.as_ref(), write_polka);
                votes.iter().fold(writer, |writer, vote| vote.write(writer))
            }
            Self::Entries(entries) => entries.iter().fold(writer.u8(3), |writer, entry| writer.raw(&entry.encode())),
            Self::Want { after } => writer.u8(4).u64(*after),
            Self::Warrant(warrant) => writer.u8(6).bytes(&warrant.encode()),
            Self::Quorum { height, certificate } => writer.u8(7).u64(*height).bytes(&certificate.encode()),
            Self::Candidate { action, reason, consents } => {
                write_consents(writer.u8(5).bytes(&action.encode()).bytes(reason), consents)
            }
        }
        .finish()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(DecodeError::Field("a message of another release"));
        }
        match reader.u8()? {
            1 => {
                let (height, session) = (reader.u64()?, reader.u64()?);
                let (echo, spoken) = (reader.option(Reader::u64)?, reader.option(Reader::u64)?);
                let machine = reader.array()?;
                reader.end(Self::Status { height, session, echo, spoken, machine })
            }
            2 => {
                let (height, polka) = (reader.u64()?, reader.option(read_polka)?);
                let votes = reader.all(Vote::read)?;
                if votes.len() > MOST_VOTES {
                    return Err(DecodeError::Field("as many votes as there are in a view"));
                }
                Ok(Self::Votes { height, votes, polka })
            }
            3 => {
                let mut entries = Vec::new();
                while !reader.is_empty() {
                    // Nobody honest sends more than one where they are so long.
                    if bytes.len() > MESSAGE_BYTES + HEAD && !entries.is_empty() {
                        return Err(DecodeError::TooLong { got: bytes.len(), most: MESSAGE_BYTES + HEAD });
                    }
                    entries.push(CertifiedEntry::read(&mut reader)?);
                }
                Ok(Self::Entries(entries))
            }
            4 => {
                let after = reader.u64()?;
                reader.end(Self::Want { after })
            }
            5 => {
                let (action, reason) = (Action::decode(reader.bytes()?)?, reader.bytes()?.to_vec());
                let consents = read_consents(&mut reader)?;
                reader.end(Self::Candidate { action, reason, consents })
            }
            6 => {
                let warrant = Warrant::decode(reader.bytes()?)?;
                reader.end(Self::Warrant(Box::new(warrant)))
            }
            7 => {
                let (height, certificate) = (reader.u64()?, read_certificate(&mut reader)?);
                reader.end(Self::Quorum { height, certificate })
            }
            _ => Err(DecodeError::Field("the kind of message")),
        }
    }
}
