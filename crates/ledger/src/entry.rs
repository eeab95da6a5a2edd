//! Entries: what a group decides, one thing after the other.

use theta_agreement::Digest;
use theta_groups::Transcript;
use theta_names::codec::{DecodeError, Reader, Writer};
use theta_names::{Delivery, Epoch, KeyName, KeyState, SuiteName, Version};
use theta_statements::{CeremonyRequest, KeyChange, StateChange};

use crate::consent::{read_consents, write_consents};
use crate::{Consent, LedgerId, MemberChange};

/// The version of the encoding. Format 1 had public keys as the text of their files.
const FORMAT: u8 = 2;
/// The longest entry in bytes: it has room for the public key of 1,000 nodes and a reason of 64 KiB.
pub const MOST_ENTRY: usize = 1 << 18;

/// One decision, and where it stands in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number: the genesis is 0, the first entry 1.
    pub height: u64,
    /// The digest of the entry before; the ledger's id at height 1.
    pub previous: Digest,
    /// When it was proposed, in seconds since 1970 by the proposer's clock; never before the entry before.
    pub time: u64,
    /// What was decided.
    pub action: Action,
    /// Who asked for it: the client's signed request with approvals, or nothing where it proves itself.
    pub reason: Vec<u8>,
    /// Those whose consent it takes, by rising number: see [`LedgerState::demand`](crate::LedgerState::demand).
    pub consents: Vec<Consent>,
}

/// What a group decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A key that no ceremony of this ledger made: a dealer brought it.
    Adopt(AdoptedKey),
    /// A ceremony begins. Its number is the height of this entry.
    Begin(CeremonyRequest),
    /// A ceremony has ended.
    End {
        /// Its number.
        ceremony: u64,
        /// How.
        outcome: Outcome,
    },
    /// The state of a key or a version of it changes.
    SetState(StateChange),
    /// Who belongs to the group.
    Members(MemberChange),
}

/// A key that was there before the ledger knew it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptedKey {
    /// Its name.
    pub key: KeyName,
    /// Its version.
    pub version: Version,
    /// Its sharing.
    pub epoch: Epoch,
    /// Its scheme and group.
    pub suite: SuiteName,
    /// Who makes shares for a request.
    pub delivery: Delivery,
    /// How many shares it takes.
    pub k: u16,
    /// Who holds the shares: that of index i at place i - 1.
    pub holders: Vec<u16>,
    /// Its public part in binary (`spec/keys.md`): the public key and all verification keys.
    pub public: Vec<u8>,
}

/// How a ceremony ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A sharing serves.
    Activated {
        /// The key's public part in binary: the public key and all verification keys.
        public: Vec<u8>,
        /// The certificate of the ceremony's members.
        certificate: Vec<u8>,
    },
    /// The lost share was found.
    Recovered,
    /// Nothing came of it.
    Aborted,
    /// It was cancelled: a client asked for its end, and the policies that it takes have granted that.
    Cancelled,
}

impl Entry {
    /// Format (1), height (8), digest of the entry before (32), time (8), `[action]`, `[reason]`, consents.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = Writer::new(FORMAT).u64(self.height).raw(&self.previous).u64(self.time);
        write_consents(writer.bytes(&self.action.encode()).bytes(&self.reason), &self.consents).finish()
    }

    /// Reads what [`Entry::encode`] wrote, and nothing else.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MOST_ENTRY {
            return Err(DecodeError::Field("an entry that is not too long"));
        }
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(DecodeError::Field("an entry in a format of another release"));
        }
        let (height, previous, time) = (reader.u64()?, reader.array()?, reader.u64()?);
        let action = Action::decode(reader.bytes()?)?;
        let reason = reader.bytes()?.to_vec();
        let consents = read_consents(&mut reader)?;
        reader.end(Self { height, previous, time, action, reason, consents })
    }

    /// What stands for an encoded entry in votes, in the next entry, and for people.
    #[must_use]
    pub fn digest_of(ledger: &LedgerId, encoded: &[u8]) -> Digest {
        Transcript::new("theta/ledger/entry/v1").with("ledger", ledger.as_bytes()).with("entry", encoded).finish32()
    }

    /// What stands for it.
    #[must_use]
    pub fn digest(&self, ledger: &LedgerId) -> Digest {
        Self::digest_of(ledger, &self.encode())
    }
}

impl Action {
    /// A tag (1) and its fields.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Adopt(adopted) => {
                let AdoptedKey { key, version, epoch, suite, delivery, k, holders, public } = adopted;
                let writer = Writer::new(1).word(key.as_str()).version(*version).short_epoch(*epoch);
                writer.word(suite.as_str()).delivery(*delivery).u16(*k).nodes(holders).bytes(public)
            }
            Self::Begin(request) => Writer::new(2).raw(&request.nonce).bytes(&request.change.encode()),
            Self::End { ceremony, outcome } => {
                let writer = Writer::new(3).u64(*ceremony);
                match outcome {
                    Outcome::Activated { public, certificate } => writer.u8(1).bytes(public).bytes(certificate),
                    Outcome::Recovered => writer.u8(2),
                    Outcome::Aborted => writer.u8(3),
                    Outcome::Cancelled => writer.u8(4),
                }
            }
            Self::SetState(StateChange { key, version, state, generation, not_before }) => {
                let writer = Writer::new(4).word(key.as_str()).named_version(*version).word(state.name());
                writer.u64(*generation).u64(*not_before)
            }
            Self::Members(change) => return change.encode(),
        }
        .finish()
    }

    /// Reads what [`Action::encode`] wrote, and nothing else.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let action = match reader.u8()? {
            1 => {
                let (key, version, epoch) = (reader.key_name()?, reader.version()?, reader.short_epoch()?);
                let suite = reader.word()?.parse().map_err(|_| DecodeError::Field("the name of a suite"))?;
                let (delivery, k) = (reader.delivery()?, reader.u16()?);
                let (holders, public) = (reader.nodes()?, reader.bytes()?.to_vec());
                Self::Adopt(AdoptedKey { key, version, epoch, suite, delivery, k, holders, public })
            }
            2 => {
                let nonce = reader.array()?;
                Self::Begin(CeremonyRequest { nonce, change: KeyChange::decode(reader.bytes()?)? })
            }
            3 => {
                let ceremony = reader.u64()?;
                let outcome = match reader.u8()? {
                    1 => Outcome::Activated { public: reader.bytes()?.to_vec(), certificate: reader.bytes()?.to_vec() },
                    2 => Outcome::Recovered,
                    3 => Outcome::Aborted,
                    4 => Outcome::Cancelled,
                    _ => return Err(DecodeError::Field("how a ceremony ended")),
                };
                Self::End { ceremony, outcome }
            }
            4 => {
                let (key, version) = (reader.key_name()?, reader.named_version()?);
                let word = reader.word()?;
                let state = KeyState::ALL.into_iter().find(|state| state.name() == word);
                let state = state.ok_or(DecodeError::Field("a state"))?;
                let (generation, not_before) = (reader.u64()?, reader.u64()?);
                Self::SetState(StateChange { key, version, state, generation, not_before })
            }
            tag if MemberChange::TAGS.contains(&tag) => Self::Members(MemberChange::read(tag, &mut reader)?),
            _ => return Err(DecodeError::Field("the kind of action")),
        };
        reader.end(action)
    }

    /// What stands for the action wherever it stands in the history, for whoever waits for it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Transcript::new("theta/ledger/action/v1").with("action", &self.encode()).finish32()
    }
}
