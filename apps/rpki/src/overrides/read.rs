//! The files of overrides: what operators have signed, of two kinds, told apart by whether a member is named.

use serde::{Deserialize, de::IgnoredAny};

use super::{Override, OverrideError};
use crate::{
    registry::Registry,
    signatures::{KeySet, Signed},
    statements::{ByOperators, Identified},
};

/// The longest file in bytes: 64 operators' signatures have half of it. Whoever keeps the store may be a liar, and all agents read what is in it.
pub(crate) const MOST_TEXT: usize = 32 << 10;

/// What operators have signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// One object is permitted, by its digest.
    Object(Override),
    /// Something is stated in a member's place.
    Statement(ByOperators),
}

/// The field that statements have alone.
#[derive(Deserialize)]
struct Kind {
    member: Option<IgnoredAny>,
}

impl Overriding {
    /// Reads a file without asking who has signed it.
    ///
    /// # Errors
    /// [`OverrideError::Text`], [`OverrideError::Statement`].
    pub fn parse(text: &str) -> Result<(Self, Vec<Signed>), OverrideError> {
        if text.len() > MOST_TEXT {
            return Err(OverrideError::Text(format!("it has more than {MOST_TEXT} bytes")));
        }
        let kind: Kind = toml::from_str(text).map_err(|error| OverrideError::Text(error.message().to_owned()))?;
        if kind.member.is_some() {
            let (statement, signatures) = ByOperators::parse(text)?;
            return Ok((Self::Statement(statement), signatures));
        }
        Override::parse(text).map(|(one, signatures)| (Self::Object(one), signatures))
    }

    /// Reads a file and checks that enough operators have signed it.
    ///
    /// # Errors
    /// [`OverrideError`].
    pub fn signed(text: &str, operators: Option<&KeySet>) -> Result<Self, OverrideError> {
        let (read, signatures) = Self::parse(text)?;
        let operators = operators.ok_or(OverrideError::NoOperators)?;
        let (count, need) = (operators.count(&read.signed_bytes(), &signatures), operators.need());
        if count < need { Err(OverrideError::Signatures { count, need }) } else { Ok(read) }
    }

    /// Whether it makes sense by a registry's data, whoever has signed it.
    ///
    /// # Errors
    /// [`OverrideError::Statement`].
    pub fn fits(&self, registry: &Registry) -> Result<(), OverrideError> {
        match self {
            Self::Object(_) => Ok(()),
            Self::Statement(one) => Ok(one.statement.fits(registry).map(drop)?),
        }
    }

    /// The bytes that an operator signs (`spec/rpki.md`).
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        match self {
            Self::Object(one) => one.signed_bytes(),
            Self::Statement(one) => one.signed_bytes(),
        }
    }

    /// From when on it counts, in seconds since 1970, if that is said.
    #[must_use]
    pub fn begins(&self) -> Option<i64> {
        match self {
            Self::Object(_) => None,
            Self::Statement(one) => Some(one.statement.begins()),
        }
    }

    /// When it ends, in seconds since 1970.
    #[must_use]
    pub fn until(&self) -> i64 {
        match self {
            Self::Object(one) => one.until,
            Self::Statement(one) => one.until,
        }
    }
}

/// What is in a folder of overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// What is permitted by its digest.
    pub objects: Vec<Override>,
    /// What is stated in members' places.
    pub statements: Vec<Identified>,
}

impl<'a> FromIterator<&'a Overriding> for Overrides {
    /// Each once, however many files it is in.
    fn from_iter<T: IntoIterator<Item = &'a Overriding>>(all: T) -> Self {
        let mut overrides = Self::default();
        for one in all {
            match one {
                Overriding::Object(one) if !overrides.objects.contains(one) => overrides.objects.push(one.clone()),
                Overriding::Object(_) => {}
                Overriding::Statement(one) => {
                    let one = Identified::by_operators(one.clone());
                    if !overrides.statements.contains(&one) {
                        overrides.statements.push(one);
                    }
                }
            }
        }
        overrides
    }
}
