//! How a group of organisations that do not trust each other begins: a [`Card`] of each, one [`Founding`] of them all, and its
//! [`Fingerprint`], which all compare aloud.
//!
//! A founding has one encoding, whoever puts it together and in whatever order the cards came: the members are in the order of
//! their names, and their places are their numbers.

pub(crate) mod armour;
mod card;
mod error;
mod fingerprint;
mod signatures;

use std::collections::BTreeMap;

use theta_groups::Transcript;
use theta_names::{
    NodeId,
    codec::{Reader, Writer},
};

pub use self::{
    card::{Card, CardContent, CardSignatures},
    error::FoundingError,
    fingerprint::{Fingerprint, FingerprintError},
    signatures::NodeSignatures,
};
pub(crate) use card::MOST_CARD;

/// How many members a founding has at most.
pub const MOST_MEMBERS: usize = 1024;
/// Above the longest founding, in bytes.
const MOST_FOUNDING: usize = MOST_MEMBERS * (MOST_CARD + 4) + 1024;
const DOMAIN: &str = "theta/founding/v1";
const LABEL: &str = "THETA FOUNDING";

/// Who founds a group: its name, how many of the members it takes to act, and the members' cards in the order of their numbers.
/// Every card's signature was checked, and no two members share a name, a key or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    name: String,
    threshold: u16,
    members: Vec<Card>,
}

impl Founding {
    /// Puts a group together from the cards of its members, in any order. `threshold` is k.
    ///
    /// # Errors
    /// [`FoundingError`]: what does not fit, and with whom.
    pub fn assemble(name: &str, threshold: u16, mut cards: Vec<Card>) -> Result<Self, FoundingError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let begins = name.bytes().next().is_some_and(plain);
        if !begins || name.len() > 64 || !name.bytes().all(|byte| plain(byte) || b"._-".contains(&byte)) {
            return Err(FoundingError::GroupName(name.chars().take(80).collect()));
        }
        let n = cards.len();
        if !(1..=MOST_MEMBERS).contains(&n) {
            return Err(FoundingError::Members { got: n });
        }
        if threshold == 0 || usize::from(threshold) > n {
            return Err(FoundingError::Threshold { k: threshold, n });
        }
        cards.sort_by_cached_key(|card| card.name().folded());
        refuse_doubles(&cards)?;
        Ok(Self { name: name.to_owned(), threshold, members: cards })
    }

    /// Refuses cards whose time is over. Only those who put a group together ask: a group that was founded lives on.
    ///
    /// # Errors
    /// [`FoundingError::Ended`]. `now` is in seconds since 1970.
    pub fn check_time(&self, now: u64) -> Result<(), FoundingError> {
        match self.members.iter().find(|card| card.content().until < now) {
            Some(ended) => Err(FoundingError::Ended(ended.name().to_string())),
            None => Ok(()),
        }
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many members it takes to act: k.
    #[must_use]
    pub const fn threshold(&self) -> u16 {
        self.threshold
    }

    /// All members, node 1 first.
    #[must_use]
    pub fn members(&self) -> &[Card] {
        &self.members
    }

    /// All members with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (NodeId, &Card)> {
        // There are 1024 at most.
        (1_u16..).zip(&self.members).filter_map(|(number, card)| Some((NodeId::try_from(number).ok()?, card)))
    }

    /// Name, k, n, cards.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let n = u16::try_from(self.members.len()).unwrap_or(u16::MAX);
        let writer = Writer::of(DOMAIN).word(&self.name).u16(self.threshold).u16(n);
        self.members.iter().fold(writer, |writer, card| writer.bytes(&card.encode())).finish()
    }

    /// Reads what [`Founding::encode`] wrote.
    ///
    /// # Errors
    /// [`FoundingError`]: what is wrong with it.
    pub fn decode(bytes: &[u8], signatures: &dyn CardSignatures) -> Result<Self, FoundingError> {
        if bytes.len() > MOST_FOUNDING {
            return Err(FoundingError::TooLong(MOST_FOUNDING));
        }
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let name = reader.word()?;
        let (threshold, n) = (reader.u16()?, usize::from(reader.u16()?));
        if n > MOST_MEMBERS {
            return Err(FoundingError::Members { got: n });
        }
        let mut cards = Vec::new();
        for _ in 0..n {
            cards.push(Card::decode(reader.bytes_within(MOST_CARD)?, signatures)?);
        }
        reader.end(())?;
        let given: Vec<String> = cards.iter().map(|card| card.name().folded()).collect();
        let founding = Self::assemble(name, threshold, cards)?;
        if given.is_sorted() { Ok(founding) } else { Err(FoundingError::Order) }
    }

    /// Its name for ever: the hash of its encoding.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Transcript::new("theta/founding/fingerprint/v1").with("founding", &self.encode()).finish32().into()
    }

    /// Text that survives mail: the encoding in base64 between two lines that say what it is.
    #[must_use]
    pub fn to_text(&self) -> String {
        armour::write(LABEL, &self.encode())
    }

    /// The founding in a text. What stands around it does not matter.
    ///
    /// # Errors
    /// [`FoundingError`]: what is wrong with it, or that there is none or more than one.
    pub fn from_text(text: &str, signatures: &dyn CardSignatures) -> Result<Self, FoundingError> {
        match armour::read(LABEL, text, MOST_FOUNDING)?.as_slice() {
            [bytes] => Self::decode(bytes, signatures),
            [] => Err(FoundingError::Text("there is no founding in it; theta group assemble writes it")),
            _ => Err(FoundingError::Text("there is more than one founding in it")),
        }
    }
}

/// Refuses members that share what each needs for itself.
fn refuse_doubles(members: &[Card]) -> Result<(), FoundingError> {
    let mut seen: BTreeMap<(&'static str, Vec<u8>), &str> = BTreeMap::new();
    for card in members {
        let content = card.content();
        for (what, value) in [
            ("name", card.name().folded().into_bytes()),
            ("key of ceremonies", content.ceremony_key.to_vec()),
            ("operator's key", content.operator_key.as_bytes().to_vec()),
            ("TLS key", content.tls_key.to_vec()),
            ("address", content.peer_address.as_str().into()),
            ("address", content.api_address.as_str().into()),
        ] {
            if let Some(first) = seen.insert((what, value), card.name().as_str()) {
                let (first, second) = (first.to_owned(), card.name().to_string());
                return Err(FoundingError::Double { first, second, what });
            }
        }
    }
    Ok(())
}
