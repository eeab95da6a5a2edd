//! What members state, with their signatures, what operators state in their places, and what is authorised by it at a time.

mod authorised;
mod layer;
mod operators;

use std::{collections::BTreeSet, sync::Arc};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

pub use self::{
    authorised::{Authorised, MOST_SUBJECTS, OfMember, Standing, Stated, TakenUp},
    operators::ByOperators,
};
use crate::{
    attestation::{Attestation, Prefix},
    memory::Counted,
    registry::{Member, Registry},
    signatures::Signed,
};

/// What a member's signature is of begins with this.
const DOMAIN: &[u8] = b"theta/rpki/statement/v1";
/// A second has so many numbers, in bits.
const NUMBER_BITS: u32 = 20;

/// Why a file is no statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// It is not such a file.
    #[error("{0}")]
    Text(String),
    /// What it says makes no sense.
    #[error("{0}")]
    Wrong(&'static str),
    /// It was made for another RPKI.
    #[error("it is for the RPKI {0}, which is not this one")]
    Elsewhere(String),
    /// Nobody known states it.
    #[error("{0} is no member")]
    Stranger(String),
    /// The member does not hold what it is about.
    #[error("{member} does not hold what {what} is about")]
    Overclaim {
        /// The member.
        member: String,
        /// What it states.
        what: String,
    },
    /// Too few of the member's keys have signed.
    #[error("{count} of {need} keys of {member} have signed")]
    Signatures {
        /// The member.
        member: String,
        /// How many have.
        count: usize,
        /// How many have to.
        need: usize,
    },
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Act {
    Grant,
    Withdraw,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementText {
    rpki: String,
    member: String,
    number: u64,
    act: Act,
    from: i64,
    until: Option<i64>,
    roa: Option<RoaText>,
    aspa: Option<AspaText>,
    #[serde(default)]
    signature: Vec<Signed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoaText {
    asn: u32,
    prefixes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AspaText {
    customer: u32,
    #[serde(default)]
    providers: Vec<u32>,
}

/// A statement of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The name of the RPKI that it is for.
    pub rpki: String,
    /// The member's handle.
    pub member: String,
    /// The number that the member has given it: of two about the same, the one with the higher number counts. Divided by 2^20 it is a time before
    /// which it does not count, in seconds since 1970.
    pub number: u64,
    /// When it begins to count, in seconds since 1970.
    pub from: i64,
    /// When a grant ends; for a withdrawal `None`.
    pub until: Option<i64>,
    /// What it grants or withdraws.
    pub attestation: Attestation,
}

impl Statement {
    /// The bytes that the member signs (`spec/rpki.md`).
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let until = self.until.map(|until| until.to_be_bytes().to_vec()).unwrap_or_default();
        parts(
            DOMAIN,
            &[
                self.rpki.as_bytes(),
                self.member.as_bytes(),
                &self.number.to_be_bytes(),
                &self.from.to_be_bytes(),
                &until,
                &[kind(&self.attestation)],
                &self.attestation.encode(),
            ],
        )
    }

    /// Reads a file without asking who has signed it.
    ///
    /// # Errors
    /// [`StatementError::Text`], [`StatementError::Wrong`].
    pub fn parse(text: &str) -> Result<(Self, Vec<Signed>), StatementError> {
        let failed = |error: toml::de::Error| StatementError::Text(error.message().to_owned());
        let StatementText { rpki, member, number, act, from, until, roa, aspa, signature } =
            toml::from_str(text).map_err(failed)?;
        let attestation = read_attestation(roa, aspa)?;
        match (act, until) {
            (Act::Grant, Some(until)) if until > from => {}
            (Act::Withdraw, None) => {}
            (Act::Grant, _) => {
                return Err(StatementError::Wrong("a grant has an end (until), after its beginning (from)"));
            }
            (Act::Withdraw, Some(_)) => return Err(StatementError::Wrong("a withdrawal has no end (until)")),
        }
        Ok((Self { rpki, member, number, from, until, attestation }, signature))
    }

    /// Whether it counts, once it begins: which RPKI it is for, who states it, whether that member holds what it is about, and its signatures.
    ///
    /// # Errors
    /// [`StatementError`].
    pub fn check(&self, registry: &Registry, signatures: &[Signed]) -> Result<(), StatementError> {
        let member = self.fits(registry)?;
        let (count, need) = (member.keys.count(&self.signed_bytes(), signatures), member.keys.need());
        if count < need {
            return Err(StatementError::Signatures { member: self.member.clone(), count, need });
        }
        Ok(())
    }

    /// Whether it makes sense by a registry's data, whoever has signed it; whose place it is about.
    ///
    /// # Errors
    /// [`StatementError`].
    pub fn fits<'a>(&self, registry: &'a Registry) -> Result<&'a Member, StatementError> {
        if self.rpki != registry.name {
            return Err(StatementError::Elsewhere(self.rpki.clone()));
        }
        let member = registry.members.get(&self.member);
        let member = member.ok_or_else(|| StatementError::Stranger(self.member.clone()))?;
        // What a member has lost it may still withdraw.
        if self.is_grant() && !member.resources.contains(&self.attestation.resources()) {
            return Err(StatementError::Overclaim { member: self.member.clone(), what: self.attestation.to_string() });
        }
        Ok(member)
    }

    /// Whether it grants; otherwise it withdraws.
    #[must_use]
    pub fn is_grant(&self) -> bool {
        self.until.is_some()
    }

    /// From when on it counts, in seconds since 1970. A number is of a time as well, so that whoever has stolen a key cannot use up all numbers.
    #[must_use]
    pub fn begins(&self) -> i64 {
        self.from.max(begins_by(self.number))
    }

    /// The first number of a time in seconds since 1970, before which it does not count.
    #[must_use]
    pub fn first_number(time: i64) -> u64 {
        u64::try_from(time).unwrap_or_default() << NUMBER_BITS
    }

    /// What it is about, in a word. A network has one ASPA, so a later one takes the place of an earlier one; its ROAs stand side by side.
    fn subject(&self) -> String {
        match &self.attestation {
            Attestation::Roa { .. } => format!("roa-{}", hex::encode(self.attestation.digest())),
            Attestation::Aspa { customer, .. } => format!("aspa-{customer}"),
        }
    }

    /// What is remembered of it when it has counted. It counts in the place of another about the same by its number, and of two with one number, which an honest
    /// member does not sign, by their bytes, so that all agents count the same.
    fn counted(&self) -> Counted {
        Counted { number: self.number, digest: Sha256::digest(self.signed_bytes()).into(), until: self.until }
    }
}

/// What is signed: the domain and a zero byte, then each part after its length.
fn parts(domain: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [domain, &[0]].concat();
    for part in parts {
        bytes.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// What tells the content of a ROA from that of an ASPA.
fn kind(attestation: &Attestation) -> u8 {
    match attestation {
        Attestation::Roa { .. } => 1,
        Attestation::Aspa { .. } => 2,
    }
}

/// From when on a statement with this number counts, at the earliest, in seconds since 1970.
fn begins_by(number: u64) -> i64 {
    i64::try_from(number >> NUMBER_BITS).unwrap_or(i64::MAX)
}

/// A statement with what it is known by, for which its content is encoded: once, since a member has thousands of them, each of thousands of prefixes, and what
/// follows from them is asked all the time. Copies share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identified(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    statement: Statement,
    subject: String,
    file: String,
    counted: Counted,
    /// Why operators have signed it in the member's place; `None`: the member has signed it itself.
    reason: Option<String>,
}

impl Identified {
    /// Encodes it.
    #[must_use]
    pub fn new(statement: Statement) -> Self {
        let counted = statement.counted();
        Self::with(statement, counted, None)
    }

    /// The same of what operators have signed.
    #[must_use]
    pub fn by_operators(one: ByOperators) -> Self {
        let counted = one.counted();
        Self::with(one.statement, counted, Some(one.reason))
    }

    fn with(statement: Statement, counted: Counted, reason: Option<String>) -> Self {
        let (subject, file) = (statement.subject(), statement.attestation.file_name());
        Self(Arc::new(Parts { statement, subject, file, counted, reason }))
    }

    /// Why operators have signed it in the member's place; `None`: the member has signed it itself.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// What it does, in words, if operators have signed it.
    #[must_use]
    pub fn overriding(&self) -> String {
        let (Statement { member, attestation, .. }, reason) = (self.statement(), self.reason().unwrap_or_default());
        let what = match attestation {
            // Whichever providers it has.
            Attestation::Aspa { customer, .. } if !self.statement().is_grant() => format!("the ASPA of AS{customer}"),
            other => other.to_string(),
        };
        let act = if self.statement().is_grant() { "grant" } else { "withdraw" };
        format!("operators {act}, in {}'s place, {what} ({reason})", member.escape_debug())
    }

    /// The statement.
    #[must_use]
    pub fn statement(&self) -> &Statement {
        &self.0.statement
    }

    /// What it is about, in a word. A network has one ASPA, so a later one takes the place of an earlier one; its ROAs stand side by side.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The name of the file of the object that it grants.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// What is remembered of it when it has counted.
    #[must_use]
    pub fn counted(&self) -> &Counted {
        &self.0.counted
    }
}

/// What a file is about.
fn read_attestation(roa: Option<RoaText>, aspa: Option<AspaText>) -> Result<Attestation, StatementError> {
    match (roa, aspa) {
        (Some(roa), None) => read_roa(&roa),
        (None, Some(aspa)) => {
            let read = Attestation::aspa(aspa.customer, aspa.providers.into_iter().collect());
            read.ok_or(StatementError::Wrong(
                "an ASPA has 1 to 4000 providers, not the customer among them, and 0 alone",
            ))
        }
        _ => Err(StatementError::Wrong("a statement is about one of roa and aspa")),
    }
}

fn read_roa(text: &RoaText) -> Result<Attestation, StatementError> {
    let prefixes: Result<BTreeSet<_>, String> = text.prefixes.iter().map(|prefix| prefix.parse::<Prefix>()).collect();
    let read = Attestation::roa(text.asn, prefixes.map_err(StatementError::Text)?);
    read.ok_or(StatementError::Wrong("a ROA has 1 to 4000 prefixes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_make_no_sense_are_explained() {
        let head = "rpki = \"example\"\nmember = \"acme\"\nnumber = 1\nfrom = 5\n";
        let roa = "[roa]\nasn = 1\nprefixes = [\"192.0.2.0/24\"]\n";
        for (text, words) in [
            (format!("{head}act = \"grant\"\nuntil = 5\n{roa}"), "a grant has an end"),
            (format!("{head}act = \"grant\"\n{roa}"), "a grant has an end"),
            (format!("{head}act = \"withdraw\"\nuntil = 9\n{roa}"), "a withdrawal has no end"),
            (format!("{head}act = \"withdraw\"\n"), "one of roa and aspa"),
            (format!("{head}act = \"withdraw\"\n{roa}[aspa]\ncustomer = 1\nproviders = [2]\n"), "one of roa and aspa"),
            (format!("{head}act = \"grant\"\nuntil = 9\n[aspa]\ncustomer = 1\nproviders = [1]\n"), "an ASPA has"),
            (
                format!("{head}act = \"grant\"\nuntil = 9\n[roa]\nasn = 1\nprefixes = [\"192.0.2.1/24\"]\n"),
                "is no prefix",
            ),
            (format!("{head}act = \"take\"\n{roa}"), "unknown variant"),
            (format!("{head}act = \"withdraw\"\nfor = 1\n{roa}"), "unknown field"),
        ] {
            let said = Statement::parse(&text).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        let good = format!("{head}act = \"withdraw\"\n{roa}[[signature]]\nkey = \"00\"\nsignature = \"00\"\n");
        let (statement, signatures) = Statement::parse(&good).unwrap();
        assert_eq!((statement.is_grant(), signatures.len()), (false, 1));
        let other = good.replace("\"example\"", "\"test\"");
        assert_ne!(Statement::parse(&other).unwrap().0.signed_bytes(), statement.signed_bytes());
        assert!(Statement::parse(&good.replace("rpki = \"example\"\n", "")).is_err());
    }
}
