//! Rounds of a beacon, as drand numbers them: the coin's name is the message that drand signs, its value is drand's
//! randomness.

use std::{fmt, str::FromStr};

use clap::Args;
use serde::Serialize;
use theta_groups::DecodeError;
use theta_schemes::{
    Purpose, Suite,
    coins::cks05_bls::{AnyBeaconKey, drand_round},
    keys::SchemeError,
};

use crate::{
    exit::Failure,
    keys::{Keyring, NamedKey},
};

/// Suites whose coins are SHA-256 of a BLS signature of the name.
const SUITES: [Suite; 2] = [Suite::Cks05Bls04MinPk, Suite::Cks05Bls04MinSig];
/// The longest BLS signature.
const LONGEST_SIGNATURE: usize = 96;

/// The round of a beacon.
#[derive(Debug, Args)]
pub(crate) struct RoundArgs {
    /// Number of a beacon's round instead of a name, for keys of cks05-bls04-*: the coin is what drand would publish
    #[arg(long, value_name = "N", conflicts_with = "name")]
    round: Option<u64>,
    /// Signature of the round before in hexadecimal, for a beacon whose rounds are chained
    #[arg(long, value_name = "HEX", requires = "round")]
    previous: Option<String>,
}

/// A round.
pub(crate) struct Round {
    number: u64,
    previous: Option<Vec<u8>>,
}

/// A round in the terms of drand's HTTP interface.
#[derive(Serialize)]
pub(crate) struct Beacon {
    round: u64,
    /// SHA-256 of the signature.
    pub(crate) randomness: String,
    /// The BLS signature.
    pub(crate) signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_signature: Option<String>,
}

impl RoundArgs {
    /// The round, if there is one.
    pub(crate) fn round(&self) -> Result<Option<Round>, Failure> {
        let decode = |digits: &String| {
            hex::decode(digits.trim()).ok().filter(|bytes| (1..=LONGEST_SIGNATURE).contains(&bytes.len())).ok_or_else(
                || {
                    Failure::Usage(
                        "--previous is not a signature: give it in hexadecimal, as theta coin prints it".to_owned(),
                    )
                },
            )
        };
        let previous = self.previous.as_ref().map(decode).transpose()?;
        Ok(self.round.map(|number| Round { number, previous }))
    }
}

impl Round {
    /// The message that the nodes sign: SHA-256 of the previous signature, if rounds are chained, and the number in eight
    /// bytes.
    pub(crate) fn message(&self) -> Vec<u8> {
        drand_round(self.number, self.previous.as_deref()).to_vec()
    }

    /// For the output.
    pub(crate) fn beacon(&self, value: &[u8], signature: &[u8]) -> Beacon {
        Beacon {
            round: self.number,
            randomness: hex::encode(value),
            signature: hex::encode(signature),
            previous_signature: self.previous.as_ref().map(hex::encode),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}", self.number)
    }
}

/// A public key of another group's beacon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignKey(AnyBeaconKey);

impl FromStr for ForeignKey {
    type Err = String;

    fn from_str(digits: &str) -> Result<Self, String> {
        let bytes = hex::decode(digits.trim()).map_err(|_| "a beacon's key is given in hexadecimal".to_owned())?;
        AnyBeaconKey::decode(&bytes).map(Self).map_err(|error| match error {
            DecodeError::Length { got, .. } => {
                format!("a beacon's key has 48 bytes (drand's default chain) or 96 (quicknet), not {got}")
            }
            other => format!("this is no key of a beacon: {other}"),
        })
    }
}

/// A key with which to check a coin.
pub(crate) enum CoinKey<'a> {
    /// A key of the group, from a file.
    Ours(NamedKey),
    /// Another group's key, without name and suite.
    Foreign(&'a ForeignKey),
}

impl CoinKey<'_> {
    /// For people.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Ours(key) => key.name.as_str(),
            Self::Foreign(_) => "given",
        }
    }

    /// Refuses keys whose coins drand could not publish.
    pub(crate) fn check_draws_rounds(&self) -> Result<(), Failure> {
        match self {
            Self::Ours(key) => check(key),
            Self::Foreign(_) => Ok(()),
        }
    }
}

impl ForeignKey {
    /// Checks that this is the coin of that name.
    pub(crate) fn verify(&self, name: &[u8], value: &[u8], proof: &[u8]) -> Result<(), SchemeError> {
        Ok(self.0.verify(name, value, proof)?)
    }
}

/// The key that was named, or the only one that can draw rounds.
pub(crate) fn key(keyring: &Keyring, name: Option<&str>) -> Result<NamedKey, Failure> {
    let draws = |key: &NamedKey| SUITES.contains(&key.public.suite());
    let [min_pk, min_sig] = SUITES;
    if let Some(name) = name {
        let key = keyring.choose(Some(name), Purpose::Coin)?;
        check(&key)?;
        return Ok(key);
    }
    let mut fitting = keyring.all()?;
    fitting.retain(draws);
    match (fitting.pop(), fitting.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(Failure::Usage(format!(
            "no key draws rounds: that takes one of {min_pk} or {min_sig} (theta keys deal beacon={min_sig})"
        ))),
        (Some(_), false) => Err(Failure::Usage("several keys draw rounds: choose one with --key".to_owned())),
    }
}

/// Refuses keys whose coins drand could not publish.
fn check(key: &NamedKey) -> Result<(), Failure> {
    let [min_pk, min_sig] = SUITES;
    let suite = key.public.suite();
    if SUITES.contains(&suite) {
        return Ok(());
    }
    Err(Failure::Usage(format!("--round takes a key of {min_pk} or {min_sig}; {} is one of {suite}", key.name)))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn messages_are_drands() {
        let unchained = Round { number: 1, previous: None };
        // SHA-256 of 00 00 00 00 00 00 00 01.
        assert_eq!(
            hex::encode(unchained.message()),
            "cd2662154e6d76b2b2b92e70c0cac3ccf534f9b74eb5b89819ec509083d00a50"
        );
        let chained = Round { number: 1, previous: Some(vec![1]) };
        assert_ne!(chained.message(), unchained.message());
        assert_eq!(chained.message(), Sha256::digest([1, 0, 0, 0, 0, 0, 0, 0, 1]).to_vec());
    }
}
