//! Messages between the ledger's replicas (`spec/ledger.md`, Messages).

use bytes::Bytes;
use prost::Message as _;
use theta_agreement::{Ballot, Digest, MemberKeys, SIGNATURE_LEN, Signature, VoteCertificate};
use theta_groups::Transcript;
use theta_ledger::{Action, CertifiedEntry, LedgerId};
use theta_names::codec::{DecodeError, Reader, Writer};
use theta_wire::peer::{CUSTODY, Envelope, VERSION};

/// The format of a custodian's messages and the tag of the ledger's among them, then the format of the ledger's messages.
const HEAD: [u8; 3] = [1, 9, 1];

/// A proposal or vote of its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) ballot: Ballot,
    pub(crate) body: Vec<u8>,
    pub(crate) signature: Signature,
}

/// What the sender says at a height, and the prevotes and the entry that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Votes {
    pub(crate) height: u64,
    pub(crate) shown: Option<(VoteCertificate, Vec<u8>)>,
    pub(crate) votes: Vec<Vote>,
}

/// Something to decide; `consents` are as in entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) action: Action,
    pub(crate) reason: Vec<u8>,
    pub(crate) consents: Vec<u8>,
}

/// A message of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    /// Height, and the rest as it stands.
    Status(u64, Vec<u8>),
    Votes(Votes),
    Entries(Vec<CertifiedEntry>),
    /// The height after which entries are wanted.
    Want(u64),
    Candidate(Candidate),
}

/// The message of the ledger in an envelope, if there is one: the bytes behind the custodian's head.
pub(crate) fn ledger_of(bytes: &Bytes) -> Option<Bytes> {
    let envelope = Envelope::decode(bytes.clone()).ok().filter(|envelope| envelope.stream == CUSTODY)?;
    let rest = envelope.payload.strip_prefix(&HEAD)?;
    Some(envelope.payload.slice_ref(rest))
}

impl Letter {
    /// Reads what [`ledger_of`] found; `None` for what is of no use here.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        match reader.u8().ok()? {
            1 => Some(Self::Status(reader.u64().ok()?, reader.rest().to_vec())),
            2 => votes(&mut reader).ok().map(Self::Votes),
            3 => reader.all(CertifiedEntry::read).ok().map(Self::Entries),
            4 => Some(Self::Want(reader.u64().ok()?)),
            5 => {
                let action = Action::decode(reader.bytes().ok()?).ok()?;
                let (reason, consents) = (reader.bytes().ok()?.to_vec(), reader.rest().to_vec());
                Some(Self::Candidate(Candidate { action, reason, consents }))
            }
            _ => None,
        }
    }

    /// The same in an envelope, from the ledger of a custodian.
    pub(crate) fn enclose(&self) -> Bytes {
        let [format, tag, ledger] = HEAD;
        let writer = Writer::new(format).u8(tag).u8(ledger);
        let payload = match self {
            Self::Status(height, rest) => writer.u8(1).u64(*height).raw(rest),
            Self::Votes(Votes { height, shown, votes }) => {
                let writer = writer.u8(2).u64(*height).option(shown.as_ref(), |writer, (certificate, entry)| {
                    writer.bytes(&certificate.encode()).bytes(entry)
                });
                let vote =
                    |writer: Writer, vote: &Vote| vote.ballot.write(writer).bytes(&vote.body).raw(&vote.signature);
                votes.iter().fold(writer, vote)
            }
            Self::Entries(entries) => entries.iter().fold(writer.u8(3), |writer, entry| writer.raw(&entry.encode())),
            Self::Want(after) => writer.u8(4).u64(*after),
            Self::Candidate(Candidate { action, reason, consents }) => {
                writer.u8(5).bytes(&action.encode()).bytes(reason).raw(consents)
            }
        };
        let payload = payload.finish().into();
        Envelope { version: VERSION, stream: CUSTODY, payload, ..Envelope::default() }.encode_to_vec().into()
    }
}

fn votes(reader: &mut Reader<'_>) -> Result<Votes, DecodeError> {
    let height = reader.u64()?;
    let shown = reader.option(|reader| {
        let certificate = VoteCertificate::decode(reader.bytes()?).map_err(|_| DecodeError::Field("a certificate"))?;
        Ok::<_, DecodeError>((certificate, reader.bytes()?.to_vec()))
    })?;
    let mut votes = Vec::new();
    while !reader.is_empty() {
        let ballot = Ballot::read(reader).map_err(|_| DecodeError::Field("a ballot"))?;
        let (body, signature) = (reader.bytes()?.to_vec(), reader.array::<SIGNATURE_LEN>()?);
        votes.push(Vote { ballot, body, signature });
    }
    Ok(Votes { height, shown, votes })
}

/// Signs a vote as a member does (`spec/ledger.md`, Votes).
pub(crate) fn sign(
    keys: &MemberKeys,
    ledger: &LedgerId,
    (height, previous): (u64, &Digest),
    ballot: Ballot,
    body: &[u8],
) -> Signature {
    let message = Transcript::new("theta/ledger/vote/v1")
        .with("ledger", ledger.as_bytes())
        .with("height", &height.to_be_bytes())
        .with("previous", previous)
        .with("author", &keys.party().get().to_be_bytes())
        .with("ballot", &ballot.write(Writer::default()).finish())
        .with("body", body);
    keys.sign(&message)
}
