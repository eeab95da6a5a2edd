//! Why a registry's node does not take part.

use rpki::repository::x509::Serial;

use crate::{
    memory::Number,
    registry::{Authority, Registry},
    statements::{Identified, Statement},
};

/// Why the registry does not consent, in words for the audit log and whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key is neither an authority's nor one of the pool.
    #[error("{0} is no key of an authority, nor one of the pool of objects' keys")]
    Key(String),
    /// The bytes are not understood.
    #[error(
        "these bytes are no certificate, no list of revoked certificates and no attributes of a signed object as they are made here"
    )]
    Form,
    /// A key signs only what it is for.
    #[error("{key} is for {of}, and does not sign {what}")]
    Purpose {
        /// The key.
        key: String,
        /// What it is for.
        of: &'static str,
        /// What it was to sign.
        what: &'static str,
    },
    /// A part of it is not as it follows from the registry's data.
    #[error("its {0} is not what follows from the registry's data")]
    Profile(&'static str),
    /// Its times do not fit.
    #[error("its {0}")]
    Time(&'static str),
    /// The number of it was used before.
    #[error("{what} {number} was used before, or a higher one was")]
    Number {
        /// Which number.
        what: &'static str,
        /// The number.
        number: String,
    },
    /// The number would use up those of others.
    #[error("{what} {number} is above {highest}, the highest one that may be used now")]
    High {
        /// Which number.
        what: &'static str,
        /// The number.
        number: String,
        /// What it may be now.
        highest: String,
    },
    /// There are as many of something as there may be.
    #[error("there are {most} {what} already")]
    Full {
        /// What there are so many of.
        what: String,
        /// How many.
        most: usize,
    },
    /// A member has as many different objects as it may.
    #[error("there are {most} different objects of {of}, as many as {QUOTA}")]
    Objects {
        /// Whose.
        of: String,
        /// How many.
        most: usize,
    },
    /// As many keys were taken for something as may be.
    #[error("{most} keys were taken for that within a day, and {NO_OTHER}{usable}")]
    Keys {
        /// How many.
        most: usize,
        /// Which one may be used.
        usable: String,
    },
    /// The resources are not those of the member, or of the object.
    #[error("it claims {claimed}; {of} has {held}")]
    Resources {
        /// What it claims.
        claimed: String,
        /// Who has others.
        of: String,
        /// Those.
        held: String,
    },
    /// Whoever asks has other data about a member than this registry.
    #[error(
        "two registries' data differ about {of}: it holds {claimed} by those of whoever asks, and {held} by this registry's; one of them is out of step"
    )]
    OutOfStep {
        /// What it would hold.
        claimed: String,
        /// Who.
        of: String,
        /// What it holds.
        held: String,
    },
    /// No member has authorised it.
    #[error("{what} is authorised by no member's statement that counts now")]
    Unauthorised {
        /// What.
        what: String,
        /// The authority whose member would have to. `None`: any authority's, since what is to be signed does not say whose object it is.
        of: Option<String>,
    },
    /// What the member has authorised is not known here.
    #[error("{0}")]
    Unsettled(String),
    /// Something that a member has authorised would be withdrawn.
    #[error("{what} is missing, and {who} has not withdrawn it")]
    Withdraws {
        /// What is missing.
        what: String,
        /// Who would have to.
        who: String,
    },
    /// Something would be published that nobody has authorised.
    #[error("{file} is published, and nobody has authorised it")]
    Foreign {
        /// The file.
        file: String,
        /// The authority that would publish it.
        of: String,
    },
    /// Something that is published is not good.
    #[error("{file}: {reason}")]
    Object {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry of a list is none.
    #[error("its entry for the serial number {0} is 0, there twice, or of a later time")]
    Revocation(String),
    /// Certificates would be good again, or still, whose objects were withdrawn.
    #[error("it {SPARES}{serials}, certificates of {file} or others that were withdrawn")]
    Spares {
        /// The certificates' serial numbers, or some of them.
        serials: String,
        /// The file that the first one was in.
        file: String,
        /// The authority whose list it is.
        of: String,
    },
    /// Certificates of a manifest's key would end the manifest before its time.
    #[error(
        "{file}: {OTHER}, since its list {SPARES}{serials}, certificates of its key that end before the manifest's next update"
    )]
    Ends {
        /// The manifest's file.
        file: String,
        /// The certificates' serial numbers, or some of them.
        serials: String,
    },
    /// The key has signed, or is certified for, another content, or the manifests of an authority.
    #[error("this key of an object is for another content already")]
    SecondContent,
    /// A manifest's key would be certified before the registry knows which manifest it signs.
    #[error(
        "its key has not signed the last manifest of {0} that was agreed to here: a manifest's attributes are signed first, its certificate then"
    )]
    Unsigned(String),
    /// What the signature covers cannot be seen.
    #[error("what it covers cannot be seen: {0}")]
    Unseen(String),
}

impl Refusal {
    /// Whether it is about what is stated here: with or without that it might be none. What several members hold they may state alike, in files with one name, so
    /// that the member is looked at as well: another one's statement would change nothing.
    pub(crate) fn is_about(&self, one: &Identified, registry: &Registry) -> bool {
        let (Statement { member, attestation, .. }, file) = (one.statement(), one.file());
        let is_members = |authority: &Authority| authority.member.as_ref() == Some(member);
        let is_of = |of: &str| registry.authority(of).is_some_and(is_members);
        match self {
            Self::Unauthorised { what, of } => {
                let is_whose = of.as_deref().map_or_else(|| registry.authorities.iter().any(is_members), is_of);
                is_whose && (*what == attestation.to_string() || *what == object(file))
            }
            Self::Withdraws { what, who } => who == member && *what == attestation.to_string(),
            Self::Foreign { file: published, of } | Self::Spares { file: published, of, .. } => {
                is_of(of) && published == file
            }
            _ => false,
        }
    }
}

/// How the object in a file is called.
pub(super) fn object(file: &str) -> String {
    format!("the object {file}")
}

/// Before serial numbers that a list should have.
const SPARES: &str = "does not revoke ";
/// Before the key that may be used, if there is one.
const NO_OTHER: &str = "no other one is taken for it now; ";
/// What another key may do.
const OTHER: &str = "another key may sign it";
/// Who says how many objects there may be.
const QUOTA: &str = "the registry's data permit (objects)";

/// Whether an objection, which may be among other words, is to the key that an issuer has chosen for an object or a manifest: another one may do.
#[must_use]
pub fn blames_key(objection: &str) -> bool {
    ["for another content already", NO_OTHER, OTHER].iter().any(|words| objection.contains(words))
}

/// Whether an objection, which may be among other words, is that a member has as many objects as it may.
#[must_use]
pub fn blames_quota(objection: &str) -> bool {
    objection.contains(QUOTA)
}

/// The keys that may be used instead, by the words of objections.
pub fn usable_keys(objections: &str) -> impl Iterator<Item = &str> {
    let keys = objections.split(NO_OTHER).skip(1).filter_map(|rest| rest.split_once(MAY));
    keys.map(|(key, _)| key).filter(|key| !key.contains(' '))
}

/// After a key that may be used.
pub(super) const MAY: &str = " may";

/// The serial numbers that a list should have, by the words of objections.
pub fn spared(objections: &str) -> impl Iterator<Item = Number> {
    let numbers = objections.split(SPARES).skip(1).flat_map(|rest| rest.split(", "));
    numbers
        .filter_map(|number| number.parse::<Serial>().ok())
        .map(Serial::into_array)
        .filter(|number| *number != [0; 20])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attestation::Attestation, registry::tests::text};

    /// What two members hold both may state, and operators in their places: what one of them has stated is no reason why the other one's object is refused.
    #[test]
    fn a_refusal_is_about_what_its_own_member_states() {
        let registry = Registry::parse(&text()).unwrap();
        let stated = |member: &str| {
            let (rpki, member) = ("example".to_owned(), member.to_owned());
            let attestation = Attestation::roa(64_496, ["192.0.2.0/24".parse().unwrap()].into()).unwrap();
            Identified::new(Statement { rpki, member, number: 1, from: 0, until: Some(9), attestation })
        };
        let (own, others) = (stated("acme"), stated("else"));
        let (what, file) = (own.statement().attestation.to_string(), own.file().to_owned());
        let refusals = |of: &str| {
            let of = of.to_owned();
            [
                Refusal::Unauthorised { what: what.clone(), of: Some(of.clone()) },
                Refusal::Unauthorised { what: object(&file), of: Some(of.clone()) },
                Refusal::Foreign { file: file.clone(), of: of.clone() },
                Refusal::Spares { serials: "7".to_owned(), file: file.clone(), of },
            ]
        };
        let withdraws = |who: &str| Refusal::Withdraws { what: what.clone(), who: who.to_owned() };
        for refusal in refusals("acme").into_iter().chain([withdraws("acme")]) {
            assert!(refusal.is_about(&own, &registry) && !refusal.is_about(&others, &registry), "{refusal:?}");
        }
        // The anchor is no member's authority.
        for refusal in refusals("ta").into_iter().chain([withdraws("the registry's data")]) {
            assert!(!refusal.is_about(&own, &registry), "{refusal:?}");
        }
        // A content does not say whose it is: any member's who has an authority.
        let content = Refusal::Unauthorised { what: what.clone(), of: None };
        assert!(content.is_about(&own, &registry) && !content.is_about(&others, &registry));
        let other = Refusal::Unauthorised { what: "the ROA of AS1 for 192.0.2.0/24".to_owned(), of: None };
        assert!(!other.is_about(&own, &registry));
    }

    #[test]
    fn what_is_of_the_key_is_said_so() {
        let usable = format!("rpki-ee-3{MAY}");
        for refusal in [Refusal::SecondContent, Refusal::Keys { most: 4, usable }] {
            assert!(blames_key(&format!("node 2: {refusal}; node 3: {refusal}")));
        }
        assert!(!blames_key(&Refusal::Form.to_string()));
        let objects = Refusal::Objects { of: "acme".to_owned(), most: 1 }.to_string();
        assert!(blames_quota(&objects) && !blames_key(&objects));
    }

    #[test]
    fn keys_and_numbers_are_read_from_objections() {
        let keys = |usable: &str| Refusal::Keys { most: 4, usable: usable.to_owned() }.to_string();
        let all = format!(
            "node 2: {}; node 3: {}; node 4: {}",
            keys("a may"),
            keys("none of them is in the pool"),
            keys("b may")
        );
        assert_eq!(usable_keys(&all).collect::<Vec<_>>(), ["a", "b"]);
        let (serials, file) = ("11, 65536".to_owned(), "acme.mft".to_owned());
        let ends = Refusal::Ends { file: file.clone(), serials };
        let spares = Refusal::Spares { file, serials: "7".to_owned(), of: "acme".to_owned() };
        let all = format!("node 2: {ends}; node 3: {spares}; node 4: no");
        let number = |number: u64| Serial::from(number).into_array();
        assert_eq!(spared(&all).collect::<Vec<_>>(), [11, 65_536, 7].map(number));
    }
}
