//! Verifies the proofs of tokens, each once for its connection and no more of them than a client needs.
//!
//! Who has a token can make as many good proofs of it as it likes, by other times, and each would cost this node a signature check before
//! the policy asks for any rate. So they are counted: by connection, and by token over all connections.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use theta_network::Fingerprint;
use theta_policy::Unidentified;
use theta_statements::{ProvenToken, TokenKey, TokenProof, TokenProofError, UnixTime};

/// How many proofs of a connection are remembered: it has those of one client or a few, made anew every few minutes. Whoever passes on the
/// requests of many clients by one connection has a place for each of so many.
const REMEMBERED: usize = 32;
/// How many proofs are verified in a minute for one connection: those that are remembered, and each once more.
const OF_CONNECTION: u32 = 64;
/// How many proofs of one token are found good in a minute, by whatever connections: a program that is started a hundred times a second
/// makes one each time. They take a node half a second of a minute at most.
const OF_TOKEN: u32 = 6_000;
/// The time in which they are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The proofs of tokens that came by one connection.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    good: VecDeque<(TokenProof, ProvenToken)>,
    /// One was false. No more are verified then: whoever knows a token's key, which is no secret, could have this node verify signatures
    /// for ever.
    had_false: bool,
    verified: Minute<u32>,
}

/// What was counted in the present minute.
#[derive(Debug, Default)]
struct Minute<T> {
    began: Option<Instant>,
    counted: T,
}

/// Verifies proofs for one node.
#[derive(Debug)]
pub(super) struct Verifier {
    /// Of this node's TLS key.
    node: Fingerprint,
    /// How many proofs of each token were good. False ones do not count here: anybody who knows a token's key can make them, and would use
    /// up what the token's owner may. A connection has one of those verified.
    good: Mutex<Minute<HashMap<TokenKey, u32>>>,
}

impl Verifier {
    pub(super) fn new(node: Fingerprint) -> Self {
        Self { node, good: Mutex::default() }
    }

    /// The token that this proof shows, if the policy knows it by `is_known`. It costs a signature check only if the same proof did not come by
    /// the same connection before, and as long as connection and token have not had too many.
    ///
    /// # Errors
    /// Why the token is not believed.
    pub(super) fn verified(
        &self,
        proofs: &Proofs,
        proof: TokenProof,
        is_known: impl FnOnce(TokenKey) -> bool,
        (now, at): (UnixTime, Instant),
    ) -> Result<ProvenToken, Unidentified> {
        let mut seen = locked(&proofs.0);
        if let Some((_, proven)) = seen.good.iter().find(|(good, proven)| *good == proof && now < proven.until()) {
            return Ok(*proven);
        }
        // A stranger's claim costs no more than this.
        let key = proof.key();
        if !is_known(key) {
            return Err(Unidentified::Token(key));
        }
        if seen.had_false {
            return Err(TokenProofError::Distrusted.into());
        }
        if *seen.verified.at(at) >= OF_CONNECTION {
            return Err(TokenProofError::TooManyByConnection.into());
        }
        if self.found_good(key, at) >= OF_TOKEN {
            return Err(TokenProofError::TooManyOfToken.into());
        }
        let verified = proof.verify(self.node.as_bytes(), now);
        seen.had_false = verified == Err(TokenProofError::False);
        let proven = verified?;
        count(seen.verified.at(at));
        count(locked(&self.good).at(at).entry(key).or_default());
        if seen.good.len() >= REMEMBERED {
            seen.good.pop_front();
        }
        seen.good.push_back((proof, proven));
        Ok(proven)
    }

    fn found_good(&self, key: TokenKey, at: Instant) -> u32 {
        locked(&self.good).at(at).get(&key).copied().unwrap_or_default()
    }
}

impl<T: Default> Minute<T> {
    /// What was counted, and nothing when a minute is over.
    fn at(&mut self, now: Instant) -> &mut T {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= MINUTE) {
            *self = Self { began: Some(now), counted: T::default() };
        }
        &mut self.counted
    }
}

fn count(number: &mut u32) {
    *number = number.saturating_add(1);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use theta_statements::{Token, Validity};

    use super::*;

    const NOW: UnixTime = UnixTime(10_000_000);

    fn node(number: u8) -> Fingerprint {
        [number; 32].into()
    }

    fn token(digit: char) -> Token {
        format!("theta-token2-{}{digit}", "A".repeat(42)).parse().unwrap()
    }

    /// A proof that differs from all others of this token by its number.
    fn proof(token: &Token, number: u64, node: Fingerprint) -> TokenProof {
        token.prove(node.as_bytes(), Validity { from: UnixTime(NOW.0 - number), until: NOW.plus(1_000_000) })
    }

    fn refused(error: TokenProofError) -> Result<(), Unidentified> {
        Err(error.into())
    }

    #[test]
    fn one_connection_has_so_many_proofs_verified_in_a_minute() {
        let (verifier, proofs, token, start) = (Verifier::new(node(7)), Proofs::default(), token('A'), Instant::now());
        let show = |proofs: &Proofs, number: u64, at| {
            verifier.verified(proofs, proof(&token, number, node(7)), |_| true, (NOW, at)).map(drop)
        };
        let most = u64::from(OF_CONNECTION);
        assert!((0..most).all(|number| show(&proofs, number, start) == Ok(())));
        let too_many = refused(TokenProofError::TooManyByConnection);
        assert!((most..most * 4).all(|number| show(&proofs, number, start) == too_many));
        assert_eq!(show(&proofs, most - 1, start), Ok(()), "what is remembered costs nothing");
        assert_eq!(show(&Proofs::default(), most, start), Ok(()), "another connection has its own measure");
        assert_eq!(show(&proofs, most, start + MINUTE), Ok(()), "and so has another minute");
    }

    #[test]
    fn one_token_has_so_many_proofs_found_good_in_a_minute() {
        let (verifier, token, start) = (Verifier::new(node(7)), token('A'), Instant::now());
        let show = |token: &Token, of, at| {
            verifier.verified(&Proofs::default(), proof(token, 0, of), |_| true, (NOW, at)).map(drop)
        };
        // False ones do not count: whoever knows the key can make them.
        assert!((0..8).all(|_| show(&token, node(8), start) == refused(TokenProofError::False)));
        // As if so many connections had come: each verification takes a while in a build without optimisation.
        locked(&verifier.good).at(start).insert(token.key(), OF_TOKEN - 1);
        assert_eq!(show(&token, node(7), start), Ok(()));
        assert_eq!(show(&token, node(7), start), refused(TokenProofError::TooManyOfToken));
        assert_eq!(show(&self::token('E'), node(7), start), Ok(()), "each token has its own measure");
        assert_eq!(show(&token, node(7), start + MINUTE), Ok(()));
    }
}
