//! Which parties make shares for a request, and which of them combine.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng as _};
use theta_groups::Transcript;
use theta_rounds::PartyId;
use theta_schemes::Statement;
use theta_schemes::keys::KeyId;
use theta_sharing::Threshold;

/// How many makers are drawn beyond k, so that one that is silent or slow costs nothing.
const SURPLUS: u16 = 1;
/// How many makers combine, so that one that is silent or slow costs nothing.
const COMBINERS: usize = 2;

/// What a party does for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Makes a share for all, and combines for itself.
    Everything,
    /// Makes a share for the combiners.
    Make { combiners: Vec<PartyId> },
    /// The same, and combines for all.
    Combine { combiners: Vec<PartyId> },
    /// Waits for the combined value.
    StandBy,
}

impl Duty {
    /// The duty of party `local`, and who combines: see `spec/quorum.md`.
    pub(super) fn draw(
        local: PartyId,
        threshold: Threshold,
        key: &KeyId,
        statement: &Statement<'_>,
    ) -> (Self, Vec<PartyId>) {
        let makers = makers(threshold, &seed(key, statement));
        let combiners: Vec<PartyId> = makers.iter().copied().take(COMBINERS).collect();
        let duty = if combiners.contains(&local) {
            Self::Combine { combiners: combiners.clone() }
        } else if makers.contains(&local) {
            Self::Make { combiners: combiners.clone() }
        } else {
            Self::StandBy
        };
        (duty, combiners)
    }
}

/// The seed of the draw. Everything in it is public.
fn seed(key: &KeyId, statement: &Statement<'_>) -> [u8; 32] {
    Transcript::new("theta/one-round/makers/v1")
        .with("key id", key.as_bytes())
        .with("operation", statement.operation().as_bytes())
        .with("statement", statement.bytes())
        .finish32()
}

/// The makers in the order in which they are drawn: the first places of a shuffle of all parties (Durstenfeld,
/// Algorithm 235). Place i is exchanged with place i + (r mod (n - i)), r being the next eight bytes of the key stream
/// of ChaCha20 (little-endian), the seed its key and its nonce zero. The remainder favours no party by more than
/// n / 2^64.
fn makers(threshold: Threshold, seed: &[u8; 32]) -> Vec<PartyId> {
    let mut parties: Vec<PartyId> = threshold.indices().map(PartyId::of_share).collect();
    let count = usize::from(threshold.k().saturating_add(SURPLUS)).min(parties.len());
    let mut stream = ChaCha20Rng::from_seed(*seed);
    for place in 0..count {
        let rest = (parties.len() - place) as u64;
        let step = stream.next_u64().checked_rem(rest).and_then(|step| usize::try_from(step).ok()).unwrap_or(0);
        parties.swap(place, place + step);
    }
    parties.truncate(count);
    parties
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn numbers(parties: &[PartyId]) -> Vec<u16> {
        parties.iter().map(|party| party.get()).collect()
    }

    #[test]
    fn the_draw_is_even() {
        let threshold = Threshold::new(3, 7).unwrap();
        let mut drawn = BTreeMap::<(usize, u16), u32>::new();
        for request in 0..7_000_u32 {
            let mut seed = [0; 32];
            seed[..4].copy_from_slice(&request.to_le_bytes());
            for (place, party) in numbers(&makers(threshold, &seed)).into_iter().enumerate() {
                *drawn.entry((place, party)).or_default() += 1;
            }
        }
        // Each of 7 parties has each of 4 places in a seventh of the requests: 1,000 times, with a deviation of 29.
        assert_eq!(drawn.len(), 28);
        assert!(drawn.values().all(|count| (850..1_150).contains(count)), "{drawn:?}");
    }

    #[test]
    fn makers_are_different_parties() {
        for (k, n) in [(1, 1), (1, 2), (2, 2), (3, 3), (2, 4), (43, 127)] {
            let threshold = Threshold::new(k, n).unwrap();
            let mut made = numbers(&makers(threshold, &[9; 32]));
            assert_eq!(made.len(), usize::from(k + 1).min(n.into()));
            made.sort_unstable();
            made.dedup();
            assert_eq!(made.len(), usize::from(k + 1).min(n.into()));
        }
    }

    /// `vectors/quorum/makers.json`, which the oracle checks from the specification alone.
    #[test]
    fn makers_are_those_of_the_specification() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/quorum/makers.json");
        let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = file["cases"].as_array().unwrap();
        assert!(cases.len() >= 10);
        for case in cases {
            let number = |name: &str| u16::try_from(case[name].as_u64().unwrap()).unwrap();
            let list =
                |name: &str| -> Vec<u64> { case[name].as_array().unwrap().iter().flat_map(|it| it.as_u64()).collect() };
            let bytes = |name: &str| hex::decode(case[name].as_str().unwrap()).unwrap();
            let statement = bytes("statement");
            let statement = match case["operation"].as_str().unwrap() {
                "decapsulate" => Statement::Decapsulate(&statement),
                "sign" => Statement::Sign(&statement),
                "sign_digest" => Statement::SignDigest(&statement),
                "flip_coin" => Statement::FlipCoin(&statement),
                other => panic!("{other}"),
            };
            let key = KeyId::from_bytes(bytes("key_id").try_into().unwrap());
            let threshold = Threshold::new(number("k"), number("n")).unwrap();
            let drawn: Vec<u64> =
                numbers(&makers(threshold, &seed(&key, &statement))).into_iter().map(u64::from).collect();
            assert_eq!(drawn, list("makers"), "{case}");
            for party in threshold.indices().map(PartyId::of_share) {
                let (duty, combiners) = Duty::draw(party, threshold, &key, &statement);
                assert_eq!(combiners.iter().map(|it| u64::from(it.get())).collect::<Vec<_>>(), list("combiners"));
                let number = u64::from(party.get());
                assert_eq!(matches!(duty, Duty::Combine { .. }), list("combiners").contains(&number));
                assert_eq!(duty == Duty::StandBy, !drawn.contains(&number));
            }
        }
    }
}
