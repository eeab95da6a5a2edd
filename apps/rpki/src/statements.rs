//! What members state, with their signatures, and what is authorised by it at a time.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{
    attestation::{Attestation, Prefix},
    registry::{Member, Registry},
    signatures::Signed,
};

/// What a member's signature is of begins with this.
const DOMAIN: &[u8] = b"theta/rpki/statement/v1";

/// Why a file is no statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// It is not such a file.
    #[error("{0}")]
    Text(String),
    /// What it says makes no sense.
    #[error("{0}")]
    Wrong(&'static str),
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

/// What a statement is about. A network has one ASPA, so a later one takes the place of an earlier one; its ROAs stand side by side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Roa(Attestation),
    Aspa(u32),
}

impl Subject {
    fn of(attestation: &Attestation) -> Self {
        match attestation {
            Attestation::Roa { .. } => Self::Roa(attestation.clone()),
            Attestation::Aspa { customer, .. } => Self::Aspa(*customer),
        }
    }
}

/// A statement of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The member's handle.
    pub member: String,
    /// The number that the member has given it: of two about the same, the one with the higher number counts.
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
        let mut bytes = [DOMAIN, &[0]].concat();
        let mut part = |part: &[u8]| {
            bytes.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bytes.extend_from_slice(part);
        };
        part(self.member.as_bytes());
        part(&self.number.to_be_bytes());
        part(&self.from.to_be_bytes());
        part(&self.until.map(|until| until.to_be_bytes().to_vec()).unwrap_or_default());
        part(&[match self.attestation {
            Attestation::Roa { .. } => 1,
            Attestation::Aspa { .. } => 2,
        }]);
        part(&self.attestation.encode());
        bytes
    }

    /// Reads a file and checks it: who states it, whether that member holds what it is about, and its signatures.
    ///
    /// # Errors
    /// [`StatementError`].
    pub fn read(text: &str, registry: &Registry) -> Result<Self, StatementError> {
        let (statement, signatures) = Self::parse(text)?;
        let handle = &statement.member;
        let member = registry.members.get(handle).ok_or_else(|| StatementError::Stranger(handle.clone()))?;
        statement.check(member, &signatures)?;
        Ok(statement)
    }

    /// Reads a file without asking who has signed it.
    ///
    /// # Errors
    /// [`StatementError::Text`], [`StatementError::Wrong`].
    pub fn parse(text: &str) -> Result<(Self, Vec<Signed>), StatementError> {
        let failed = |error: toml::de::Error| StatementError::Text(error.message().to_owned());
        let StatementText { member, number, act, from, until, roa, aspa, signature } =
            toml::from_str(text).map_err(failed)?;
        let attestation = match (roa, aspa) {
            (Some(roa), None) => read_roa(&roa)?,
            (None, Some(aspa)) => {
                let read = Attestation::aspa(aspa.customer, aspa.providers.into_iter().collect());
                read.ok_or(StatementError::Wrong(
                    "an ASPA has 1 to 4000 providers, not the customer among them, and 0 alone",
                ))?
            }
            _ => return Err(StatementError::Wrong("a statement is about one of roa and aspa")),
        };
        match (act, until) {
            (Act::Grant, Some(until)) if until > from => {}
            (Act::Withdraw, None) => {}
            (Act::Grant, _) => {
                return Err(StatementError::Wrong("a grant has an end (until), after its beginning (from)"));
            }
            (Act::Withdraw, Some(_)) => return Err(StatementError::Wrong("a withdrawal has no end (until)")),
        }
        Ok((Self { member, number, from, until, attestation }, signature))
    }

    fn check(&self, member: &Member, signatures: &[Signed]) -> Result<(), StatementError> {
        // What a member has lost it may still withdraw.
        if self.is_grant() && !member.resources.contains(&self.attestation.resources()) {
            return Err(StatementError::Overclaim { member: self.member.clone(), what: self.attestation.to_string() });
        }
        let (count, need) = (member.keys.count(&self.signed_bytes(), signatures), member.keys.need());
        if count < need {
            return Err(StatementError::Signatures { member: self.member.clone(), count, need });
        }
        Ok(())
    }

    /// Whether it grants; otherwise it withdraws.
    #[must_use]
    pub fn is_grant(&self) -> bool {
        self.until.is_some()
    }

    /// The order in which statements count: by number, and of two with one number, which an honest member does not sign, by their bytes,
    /// so that all agents count the same.
    fn rank(&self) -> (u64, [u8; 32]) {
        (self.number, Sha256::digest(self.signed_bytes()).into())
    }
}

fn read_roa(text: &RoaText) -> Result<Attestation, StatementError> {
    let prefixes: Result<BTreeSet<_>, String> = text.prefixes.iter().map(|prefix| prefix.parse::<Prefix>()).collect();
    let read = Attestation::roa(text.asn, prefixes.map_err(StatementError::Text)?);
    read.ok_or(StatementError::Wrong("a ROA has 1 to 4000 prefixes"))
}

/// What members have authorised, at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorised {
    by_member: BTreeMap<String, BTreeSet<Attestation>>,
}

impl Authorised {
    /// What follows from the statements that count now: about each subject, the last one decides.
    #[must_use]
    pub fn at(statements: &[Statement], now: i64) -> Self {
        let mut last = BTreeMap::<_, &Statement>::new();
        for statement in statements.iter().filter(|statement| statement.from <= now) {
            let subject = (&statement.member, Subject::of(&statement.attestation));
            let current = last.entry(subject).or_insert(statement);
            if current.rank() < statement.rank() {
                *current = statement;
            }
        }
        let mut by_member = BTreeMap::<String, BTreeSet<_>>::new();
        for statement in last.into_values().filter(|statement| statement.until.is_some_and(|until| now < until)) {
            by_member.entry(statement.member.clone()).or_default().insert(statement.attestation.clone());
        }
        Self { by_member }
    }

    /// What this member has authorised.
    pub fn of(&self, member: &str) -> impl Iterator<Item = &Attestation> {
        self.by_member.get(member).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(number: u64, from: i64, until: Option<i64>, attestation: &Attestation) -> Statement {
        Statement { member: "acme".to_owned(), number, from, until, attestation: attestation.clone() }
    }

    fn roa(asn: u32) -> Attestation {
        Attestation::roa(asn, ["192.0.2.0/24".parse::<Prefix>().unwrap()].into()).unwrap()
    }

    fn now(statements: &[Statement], time: i64) -> Vec<Attestation> {
        Authorised::at(statements, time).of("acme").cloned().collect()
    }

    #[test]
    fn the_last_statement_about_something_counts() {
        let (one, two) = (roa(1), roa(2));
        let all = [
            statement(1, 0, Some(100), &one),
            statement(2, 0, Some(100), &two),
            statement(3, 10, None, &one),
            statement(4, 20, Some(50), &one),
        ];
        assert_eq!(now(&all, 5), [one.clone(), two.clone()]);
        assert_eq!(now(&all, 10), std::slice::from_ref(&two), "withdrawn");
        assert_eq!(now(&all, 20), [one, two.clone()], "granted again");
        assert_eq!(now(&all, 50), [two], "the last grant has ended, and the first does not come back");
        assert!(now(&all, 100).is_empty());
    }

    #[test]
    fn a_network_has_one_aspa() {
        let [old, new] = [2, 3].map(|provider| Attestation::aspa(1, [provider].into()).unwrap());
        let all = [statement(2, 0, Some(9), &new), statement(1, 0, Some(9), &old)];
        assert_eq!(now(&all, 1), [new]);
        // Whatever the withdrawal says of providers.
        assert!(now(&[&all[..], &[statement(3, 0, None, &old)]].concat(), 1).is_empty());
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let equal = [statement(1, 0, Some(9), &roa(1)), statement(1, 0, None, &roa(1))];
        let turned = [equal[1].clone(), equal[0].clone()];
        assert_eq!(now(&equal, 1), now(&turned, 1));
    }

    #[test]
    fn files_that_make_no_sense_are_explained() {
        let head = "member = \"acme\"\nnumber = 1\nfrom = 5\n";
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
    }
}
