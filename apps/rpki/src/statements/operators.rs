//! What operators state in a member's place: a grant or a withdrawal that a threshold of them signs, with a reason and an end (`spec/rpki.md`, Overrides).

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Act, AspaText, RoaText, Statement, StatementError, kind, parts, read_attestation};
use crate::{memory::Counted, overrides::words::check_reason, signatures::Signed};

/// What an operator's signature is of begins with this: it is none of a member's, and none under a digest.
const DOMAIN: &[u8] = b"theta/rpki/override-statement/v1";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    rpki: String,
    member: String,
    number: u64,
    act: Act,
    from: i64,
    until: i64,
    reason: String,
    roa: Option<RoaText>,
    aspa: Option<AspaText>,
    #[serde(default)]
    signature: Vec<Signed>,
}

/// A statement of operators in a member's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByOperators {
    /// As the member would have it: a withdrawal has no end there.
    pub statement: Statement,
    /// When it ends, in seconds since 1970: a withdrawal as well, so that nothing that operators state is for ever.
    pub until: i64,
    /// Why, for everybody who reads the log.
    pub reason: String,
}

impl ByOperators {
    /// The bytes that an operator signs (`spec/rpki.md`).
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let Self { statement, until, reason } = self;
        let Statement { rpki, member, number, from, attestation, .. } = statement;
        parts(
            DOMAIN,
            &[
                rpki.as_bytes(),
                member.as_bytes(),
                &number.to_be_bytes(),
                &[if statement.is_grant() { 1 } else { 2 }],
                &from.to_be_bytes(),
                &until.to_be_bytes(),
                &[kind(attestation)],
                &attestation.encode(),
                reason.as_bytes(),
            ],
        )
    }

    /// Reads a file without asking who has signed it.
    ///
    /// # Errors
    /// [`StatementError::Text`], [`StatementError::Wrong`].
    pub fn parse(text: &str) -> Result<(Self, Vec<Signed>), StatementError> {
        let failed = |error: toml::de::Error| StatementError::Text(error.message().to_owned());
        let Text { rpki, member, number, act, from, until, reason, roa, aspa, signature } =
            toml::from_str(text).map_err(failed)?;
        let attestation = read_attestation(roa, aspa)?;
        check_reason(&reason).map_err(StatementError::Text)?;
        if until <= from {
            return Err(StatementError::Wrong("what operators state has an end (until), after its beginning (from)"));
        }
        let granted = matches!(act, Act::Grant).then_some(until);
        let statement = Statement { rpki, member, number, from, until: granted, attestation };
        Ok((Self { statement, until, reason }, signature))
    }

    /// What is remembered of it when it has counted. A withdrawal has an end as well.
    pub(super) fn counted(&self) -> Counted {
        let digest = Sha256::digest(self.signed_bytes()).into();
        Counted { number: self.statement.number, digest, until: Some(self.until) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        overrides::{Override, OverrideError, Overriding},
        registry::{Registry, tests::text},
        statements::Identified,
    };

    const ROA: &str = "[roa]\nasn = 64496\nprefixes = [\"192.0.2.0/24\"]\n";

    fn file(act: &str, until: i64, reason: &str) -> String {
        format!(
            "rpki = \"example\"\nmember = \"acme\"\nnumber = 1\nact = \"{act}\"\nfrom = 5\nuntil = {until}\nreason = \"{reason}\"\n"
        )
    }

    fn read(text: &str) -> ByOperators {
        ByOperators::parse(text).unwrap().0
    }

    /// The bytes of `spec/rpki.md`, written down part by part.
    #[test]
    fn what_is_signed_has_the_reason_and_the_end() {
        let one = read(&(file("grant", 9, "why") + ROA));
        let part = |part: &[u8]| [&u64::try_from(part.len()).unwrap().to_be_bytes(), part].concat();
        let content = one.statement.attestation.encode();
        let (number, from, until) = (1_u64.to_be_bytes(), 5_i64.to_be_bytes(), 9_i64.to_be_bytes());
        let all: [&[u8]; 9] = [b"example", b"acme", &number, &[1], &from, &until, &[1], &content, b"why"];
        let expected: Vec<u8> = all.into_iter().flat_map(part).collect();
        assert_eq!(one.signed_bytes(), [b"theta/rpki/override-statement/v1\0", expected.as_slice()].concat());
    }

    /// Whatever is another statement has other bytes, and so has what the member or operators sign otherwise.
    #[test]
    fn no_signature_serves_for_anything_else() {
        let (good, other) = (file("grant", 9, "why") + ROA, "[aspa]\ncustomer = 64496\nproviders = [1]\n");
        let texts = [
            good.clone(),
            file("withdraw", 9, "why") + ROA,
            file("grant", 10, "why") + ROA,
            file("grant", 9, "who") + ROA,
            file("grant", 9, "why") + other,
            good.replace("number = 1", "number = 2"),
            good.replace("from = 5", "from = 6"),
            good.replace("\"acme\"", "\"else\""),
            good.replace("\"example\"", "\"test\""),
        ];
        let mut all: Vec<_> = texts.iter().map(|text| read(text).signed_bytes()).collect();
        let one = read(&good);
        all.push(one.statement.signed_bytes());
        let digest = Sha256::digest(one.signed_bytes()).into();
        all.push(Override { digest, key: "acme".to_owned(), reason: "why".to_owned(), until: 9 }.signed_bytes());
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), texts.len() + 2);
    }

    #[test]
    fn files_that_make_no_sense_are_explained() {
        for (text, words) in [
            (file("grant", 5, "why") + ROA, "has an end"),
            (file("withdraw", 5, "why") + ROA, "has an end"),
            (file("grant", 9, "") + ROA, "its reason is a line"),
            (file("grant", 9, &"x".repeat(201)) + ROA, "its reason is a line"),
            (file("grant", 9, "two\\nlines") + ROA, "its reason is a line"),
            (file("grant", 9, "why").replace("reason = \"why\"\n", "") + ROA, "reason"),
            (file("withdraw", 9, "why").replace("until = 9\n", "") + ROA, "until"),
            (file("grant", 9, "why"), "one of roa and aspa"),
            (file("grant", 9, "why") + "digest = \"00\"\n" + ROA, "unknown field"),
        ] {
            let said = Overriding::parse(&text).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        let (good, long) = (file("grant", 9, "why") + ROA, format!("#{}\n", "x".repeat(32 << 10)));
        assert!(matches!(Overriding::parse(&good), Ok((Overriding::Statement(_), _))));
        let said = Overriding::parse(&(good.clone() + &long)).unwrap_err().to_string();
        assert!(said.contains("more than 32768 bytes"), "{said}");
        // It is no statement of the member, who has no reason to give.
        assert!(Statement::parse(&good).unwrap_err().to_string().contains("unknown field"));
    }

    /// Operators cannot grant what the member does not hold, and can withdraw what it has lost.
    #[test]
    fn the_registrys_data_bind_operators_too() {
        let registry = Registry::parse(&text()).unwrap();
        let fits = |text: &str| Overriding::parse(text).unwrap().0.fits(&registry);
        let (good, more) = (file("grant", 9, "why") + ROA, ROA.replace("192.0.2.0", "198.51.100.0"));
        assert_eq!(fits(&good), Ok(()));
        let said = fits(&(file("grant", 9, "why") + &more));
        assert!(matches!(said, Err(OverrideError::Statement(StatementError::Overclaim { .. }))), "{said:?}");
        assert_eq!(fits(&(file("withdraw", 9, "why") + &more)), Ok(()));
        let said = fits(&good.replace("\"acme\"", "\"nobody\""));
        assert!(matches!(said, Err(OverrideError::Statement(StatementError::Stranger(_)))), "{said:?}");
        let said = fits(&good.replace("\"example\"", "\"test\""));
        assert!(matches!(said, Err(OverrideError::Statement(StatementError::Elsewhere(_)))), "{said:?}");
    }

    #[test]
    fn what_is_remembered_of_a_withdrawal_has_its_end() {
        let one = Identified::by_operators(read(&(file("withdraw", 9, "why") + ROA)));
        assert_eq!((one.statement().is_grant(), one.counted().until, one.reason()), (false, Some(9), Some("why")));
        assert_eq!(
            one.counted().digest,
            <[u8; 32]>::from(Sha256::digest(read(&(file("withdraw", 9, "why") + ROA)).signed_bytes()))
        );
    }
}
