//! Why a registry's node does not take part.

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
    /// As many keys are for something as may be.
    #[error("{most} keys sign that already, and no other one is taken for it; {usable}")]
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
    /// No member has authorised it.
    #[error("{0} is authorised by no member's statement that counts now")]
    Unauthorised(String),
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
    #[error("{0} is published, and nobody has authorised it")]
    Foreign(String),
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
    /// A certificate would be good again, or still, whose object was withdrawn.
    #[error("it does not revoke {serial}, the certificate of {file}, which was withdrawn")]
    Spares {
        /// The certificate's serial number.
        serial: String,
        /// The file that it was for.
        file: String,
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

/// In the words of each refusal that is of the key which was chosen for an object or a manifest: another one may do.
const OF_THE_KEY: [&str; 3] =
    ["for another content already", "no other one is taken for it", "another key may sign it"];

/// Whether an objection, which may be among other words, is to the key that an issuer has chosen.
#[must_use]
pub fn blames_key(objection: &str) -> bool {
    OF_THE_KEY.iter().any(|words| objection.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_key_is_said_so() {
        let usable = "rpki-ee-3 may".to_owned();
        for refusal in [Refusal::SecondContent, Refusal::Keys { most: 4, usable }] {
            assert!(blames_key(&format!("node 2: {refusal}; node 3: {refusal}")));
        }
        assert!(!blames_key(&Refusal::Form.to_string()));
    }
}
