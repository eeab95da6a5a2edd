//! Promises: the statements about slots that nodes sign.

use theta_ceremonies::{CeremonyKeys, CeremonyMember};
use theta_groups::Transcript;
use theta_names::NodeId;
use theta_policy::SlotClaim;
use theta_rounds::Malformed;
use theta_statements::Digest;

use crate::codec::{Reader, Writer};

const DOMAIN: &str = "theta/slot/promise/v1";
/// Names of keys and signing rules have 1 to 64 characters.
const MOST_NAME: usize = 64;

/// A slot of a signing rule of a key. The key is identified by its name: its versions and epochs share their slots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// The key's name, without a version.
    pub key: String,
    /// The slot.
    pub slot: u64,
    /// The signing rule's name.
    pub rule: String,
}

impl Subject {
    pub(super) fn of(claim: &SlotClaim) -> Self {
        Self { key: claim.key.clone(), slot: claim.slot, rule: claim.rule.as_str().to_owned() }
    }

    pub(super) fn write(&self, writer: Writer) -> Writer {
        writer.word(&self.key).word(&self.rule).u64(self.slot)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut name = || {
            let text = reader.word()?;
            if text.len() > MOST_NAME { Err(Malformed("a name that is too long")) } else { Ok(text.to_owned()) }
        };
        let (key, rule) = (name()?, name()?);
        Ok(Self { key, rule, slot: reader.u64()? })
    }
}

/// A node's signed statement that it gives this slot to this message and never to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The node that promises.
    pub node: NodeId,
    /// The digest of operation and message by which policies decide.
    pub digest: Digest,
    /// A signature over group, node, subject and digest.
    pub signature: [u8; 64],
}

impl Promise {
    /// The bytes that are signed.
    fn transcript(group: &str, node: NodeId, subject: &Subject, digest: &Digest) -> Transcript {
        Transcript::new(DOMAIN)
            .with("group", group.as_bytes())
            .with("node", &node.get().to_be_bytes())
            .with("key", subject.key.as_bytes())
            .with("rule", subject.rule.as_bytes())
            .with("slot", &subject.slot.to_be_bytes())
            .with("digest", &digest.0)
    }

    /// Signs a promise. The caller has made sure that the node's durable memory gives the slot to this message: a node
    /// that signs two is named as a liar.
    #[must_use]
    pub fn sign(group: &str, keys: &CeremonyKeys, subject: &Subject, digest: Digest) -> Self {
        let node = keys.member().node();
        let signature = keys.sign_transcript(&Self::transcript(group, node, subject, &digest));
        Self { node, digest, signature }
    }

    /// Whether this member of the group signed it.
    #[must_use]
    pub fn vartime_verify(&self, group: &str, subject: &Subject, member: &CeremonyMember) -> bool {
        let transcript = Self::transcript(group, self.node, subject, &self.digest);
        member.node() == self.node && member.vartime_verify_transcript(&transcript, &self.signature)
    }

    pub(super) fn write(&self, writer: Writer) -> Writer {
        writer.node_id(self.node).raw(&self.digest.0).raw(&self.signature)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { node: reader.node_id()?, digest: Digest(reader.array()?), signature: reader.array()? })
    }
}

/// Two promises of one node for one slot: proof, for everybody with the group file, that it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivocation {
    /// The slot.
    pub subject: Subject,
    /// One promise.
    pub first: Promise,
    /// Another promise of the same node, for another message.
    pub second: Promise,
}

impl Equivocation {
    /// Encodes it: format 1, key, rule (each behind its length in one byte), slot, both promises.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.second.write(self.first.write(self.subject.write(Writer::new(1)))).finish()
    }

    /// Reads what [`Equivocation::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != 1 {
            return Err(Malformed("another format"));
        }
        let subject = Subject::read(&mut reader)?;
        let (first, second) = (Promise::read(&mut reader)?, Promise::read(&mut reader)?);
        Ok(reader.end(Self { subject, first, second })?)
    }

    /// Whether it proves that this member lied.
    #[must_use]
    pub fn vartime_proves(&self, group: &str, member: &CeremonyMember) -> bool {
        let signed = |promise: &Promise| promise.vartime_verify(group, &self.subject, member);
        self.first.digest != self.second.digest && signed(&self.first) && signed(&self.second)
    }
}
