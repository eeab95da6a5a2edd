//! How a small group goes on when a machine is gone for ever.
//!
//! Where n < 3t + 1 it takes the votes of members that may lie or be away, at worst of all, to decide anything: one dead machine would
//! end all change. A warrant lets another machine vote in its place until it is replaced by an entry. A quorum of the *operators* signs
//! it, with keys that are on no node. See `spec/ledger.md`, Small groups.

use std::collections::{BTreeMap, BTreeSet};

use theta_agreement::{SIGNATURE_LEN, Signature};
use theta_groups::Transcript;
use theta_names::NodeId;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::change::read_card;
use crate::founding::{Card, FoundingError, MOST_CARD, MOST_MEMBERS, armour};
use crate::{LedgerId, OperatorKey};

const DOMAIN: &str = "theta/warrant/v1";
const LABEL: &str = "THETA WARRANT";
/// How many machines one warrant is for at most.
pub const MOST_STAND_INS: usize = 16;
/// How many warrants one entry is decided under at most, and a replica knows at once.
pub const MOST_WARRANTS: usize = 4;
/// For how long an operator signs, in seconds from its own clock: four weeks. The machine that was thought to be gone may come back. Then whoever still
/// has the warrant could bring it: it would silence that machine, and let the one that was to replace it vote. So warrants end.
pub const LONGEST_WARRANT: u64 = 28 * 86_400;
/// Above the longest warrant, in bytes.
pub(crate) const MOST_WARRANT: usize = MOST_STAND_INS * (MOST_CARD + 64) + MOST_MEMBERS * (2 + SIGNATURE_LEN) + 128;

/// A machine that votes in the place of a member's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The member's number.
    pub node: NodeId,
    /// The key of ceremonies of the machine that is gone.
    pub gone: [u8; 32],
    /// The card of the machine that votes in its place, and will replace it. Its signature is checked with the warrant.
    pub card: Card,
}

/// What operators sign: which machines vote in the place of those that are gone, from one height of one ledger on, and for entries until a
/// time. It serves as long as one of them has not replaced the other in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warrant {
    ledger: LedgerId,
    from: u64,
    until: u64,
    stand_ins: Vec<StandIn>,
    signatures: BTreeMap<NodeId, Signature>,
}

/// Why a warrant does not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WarrantRefusal {
    /// It is for another ledger.
    #[error("it is for another group")]
    Ledger,
    /// It is for later.
    #[error("it is for height {0} and after")]
    Early(u64),
    /// Its time is over.
    #[error("it was for entries until {0} (seconds since 1970): ask the operators for another one")]
    Ended(u64),
    /// It is for longer than operators sign for.
    #[error("it is for entries until {0} (seconds since 1970), which is more than four weeks")]
    Long(u64),
    /// It is for other members than one that serves: together they are for too many.
    #[error("another warrant serves for other members: ask for one that is for all of them")]
    Besides,
    /// As many serve as can be kept.
    #[error("{MOST_WARRANTS} other warrants serve already")]
    Full,
    /// All that it is for has come about.
    #[error("the machines that it is for are members, or those that they stand in for are not any more")]
    Done,
    /// It is for more machines than it can be without two histories coming about.
    #[error("it is for {got} machines, and in this group {most} can be stood in for at once")]
    TooMany {
        /// How many it is for.
        got: usize,
        /// How many it may be for.
        most: usize,
    },
    /// One of its machines cannot be that member's.
    #[error("node {node} cannot be replaced so: {refusal}")]
    StandIn {
        /// The member.
        node: NodeId,
        /// Why.
        refusal: Box<crate::Refusal>,
    },
    /// A signature that is not that operator's.
    #[error(
        "too few operators have signed it truly, and the signature as that of node {0} is false, or there is no such member"
    )]
    Signature(NodeId),
    /// Too few operators have signed.
    #[error("{got} operators have signed, and it takes {needed}")]
    TooFew {
        /// How many have signed.
        got: usize,
        /// How many it takes.
        needed: usize,
    },
}

impl Warrant {
    /// A warrant that nobody has signed yet. `from` is the height of the entry that is to be decided next, `until` the latest time that an
    /// entry may have which is decided under it, in seconds since 1970: [`LONGEST_WARRANT`] from now at most, and no later than the cards.
    ///
    /// # Errors
    /// [`FoundingError::Text`] if it is for nobody, for too many, or for one member twice.
    pub fn new(ledger: LedgerId, from: u64, until: u64, mut stand_ins: Vec<StandIn>) -> Result<Self, FoundingError> {
        stand_ins.sort_by_key(|stand_in| stand_in.node);
        let warrant = Self { ledger, from, until, stand_ins, signatures: BTreeMap::new() };
        if warrant.is_plain() {
            Ok(warrant)
        } else {
            Err(FoundingError::Text("a warrant is for 1 to 16 members, each once"))
        }
    }

    fn is_plain(&self) -> bool {
        let nodes = || self.stand_ins.iter().map(|stand_in| stand_in.node);
        (1..=MOST_STAND_INS).contains(&self.stand_ins.len()) && nodes().zip(nodes().skip(1)).all(|(a, b)| a < b)
    }

    /// The ledger that it is for.
    #[must_use]
    pub const fn ledger(&self) -> &LedgerId {
        &self.ledger
    }

    /// From which height on.
    #[must_use]
    pub const fn from_height(&self) -> u64 {
        self.from
    }

    /// Until when: no entry of a later time is decided under it. Seconds since 1970.
    #[must_use]
    pub const fn until(&self) -> u64 {
        self.until
    }

    /// Whether an operator whose clock shows `now` may sign it, as far as its end goes.
    ///
    /// # Errors
    /// [`WarrantRefusal::Ended`] or [`WarrantRefusal::Long`].
    pub const fn check_end(&self, now: u64) -> Result<(), WarrantRefusal> {
        if self.until < now {
            return Err(WarrantRefusal::Ended(self.until));
        }
        if self.until > now.saturating_add(LONGEST_WARRANT) {
            return Err(WarrantRefusal::Long(self.until));
        }
        Ok(())
    }

    /// Which machines vote, by rising number of the member.
    #[must_use]
    pub fn stand_ins(&self) -> &[StandIn] {
        &self.stand_ins
    }

    /// The operators' signatures, by the number of the member.
    #[must_use]
    pub const fn signatures(&self) -> &BTreeMap<NodeId, Signature> {
        &self.signatures
    }

    /// Whether two warrants are one, whoever has signed which copy.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.content() == other.content()
    }

    fn content(&self) -> Vec<u8> {
        let count = u16::try_from(self.stand_ins.len()).unwrap_or(u16::MAX);
        let writer = Writer::of(DOMAIN).raw(self.ledger.as_bytes()).u64(self.from).u64(self.until).u16(count);
        let write = |writer: Writer, stand_in: &StandIn| {
            writer.node_id(stand_in.node).raw(&stand_in.gone).bytes(&stand_in.card.encode())
        };
        self.stand_ins.iter().fold(writer, write).finish()
    }

    /// What each operator signs.
    #[must_use]
    pub fn signed(&self) -> Transcript {
        Transcript::new(DOMAIN).with("warrant", &self.content())
    }

    /// With the signature of one more operator, that of this member.
    ///
    /// An operator signs when it has heard from the operators of the machines that they are gone, and only what
    /// [`crate::LedgerState::check_signing`] and [`Warrant::check_end`] allow.
    #[must_use]
    pub fn with_signature(mut self, node: NodeId, key: &OperatorKey) -> Self {
        let signature = key.sign(&self.signed());
        self.signatures.insert(node, signature);
        self
    }

    /// The same without any signature.
    pub(crate) fn unsigned(&self) -> Self {
        Self { signatures: BTreeMap::new(), ..self.clone() }
    }

    /// Adds an operator's signature that was checked.
    pub(crate) fn add_signature(&mut self, node: NodeId, signature: Signature) {
        self.signatures.insert(node, signature);
    }

    /// With the signatures that another copy of the same warrant has, and this one lacks. Which of them are true says
    /// [`crate::LedgerState::vartime_signers`].
    #[must_use]
    pub fn merged(mut self, other: &Self) -> Self {
        if self.is_same(other) {
            other.signatures.iter().for_each(|(node, signature)| {
                self.signatures.entry(*node).or_insert(*signature);
            });
        }
        self
    }

    /// With the signatures of these alone.
    #[must_use]
    pub fn signed_by(mut self, operators: &BTreeSet<NodeId>) -> Self {
        self.signatures.retain(|node, _| operators.contains(node));
        self
    }

    /// `[domain]`, ledger, height, end, machines, signatures.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = u16::try_from(self.signatures.len()).unwrap_or(u16::MAX);
        let writer = Writer::onto(self.content()).u16(count);
        self.signatures.iter().fold(writer, |writer, (node, signature)| writer.node_id(*node).raw(signature)).finish()
    }

    /// Whether bytes begin as a warrant does.
    pub(crate) fn is_like(bytes: &[u8]) -> bool {
        Reader::of(bytes, DOMAIN).is_ok()
    }

    /// Reads what [`Warrant::encode`] wrote. Its signatures may still be false.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MOST_WARRANT {
            return Err(DecodeError::TooLong { got: bytes.len(), most: MOST_WARRANT });
        }
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let (ledger, from, until) = (LedgerId::from_bytes(reader.array()?), reader.u64()?, reader.u64()?);
        let count = usize::from(reader.u16()?);
        if count > MOST_STAND_INS {
            return Err(DecodeError::Field("the number of machines"));
        }
        let mut stand_ins = Vec::new();
        for _ in 0..count {
            let (node, gone) = (reader.node_id()?, reader.array()?);
            stand_ins.push(StandIn { node, gone, card: read_card(&mut reader)? });
        }
        let mut warrant = Self { ledger, from, until, stand_ins, signatures: BTreeMap::new() };
        for _ in 0..reader.u16()? {
            let node = reader.node_id()?;
            if warrant.signatures.last_key_value().is_some_and(|(last, _)| *last >= node) {
                return Err(DecodeError::Field("the order of signatures"));
            }
            warrant.signatures.insert(node, reader.array()?);
        }
        reader.end(())?;
        if warrant.is_plain() { Ok(warrant) } else { Err(DecodeError::Field("the order of machines")) }
    }

    /// Text that survives mail: the encoding in base64 between two lines that say what it is.
    #[must_use]
    pub fn to_text(&self) -> String {
        armour::write(LABEL, &self.encode())
    }

    /// The warrants in a text. What stands around them does not matter.
    ///
    /// # Errors
    /// [`FoundingError`]: one of them is damaged, or there is none.
    pub fn all_from_text(text: &str) -> Result<Vec<Self>, FoundingError> {
        let blocks = armour::read(LABEL, text, MOST_WARRANT)?;
        if blocks.is_empty() {
            return Err(FoundingError::Text("there is no warrant in it"));
        }
        Ok(blocks.iter().map(|bytes| Self::decode(bytes)).collect::<Result<_, _>>()?)
    }
}
