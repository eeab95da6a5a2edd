//! Openings: each party lacks one part, which both others hold.
//!
//! With active security one of them sends the part and the other its hash, in the same round, so that a false part or a false
//! hash is noticed before anything is done with the value. Which of the two lied cannot be told.

use sha2::{Digest, Sha256};
use theta_groups::{Group, Scalar as _, Secret};

use super::{BEFORE, PARTIES, Rep3};
use crate::{Element, Misbehaviour, Scalar, Security, Shared, Stop, blackbox::encode};

/// Bytes of a hash.
const DIGEST: usize = 32;

impl<G: Group, M: Security> Rep3<G, M> {
    /// This party's first part goes to the next party, the hash of its second part to the party before.
    pub(super) async fn open_scalars(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        let (next, before) = (self.party.after(1), self.party.after(BEFORE));
        let bytes = encode(values.cells().iter().map(|[first, _]| first));
        self.party.keep_together(bytes.len()).await?;
        let mut expected = Self::of(before, bytes.len());
        let mut out = Self::to(next, bytes);
        if M::ACTIVE {
            let digest = Sha256::digest(encode(values.cells().iter().map(|[_, second]| second)));
            for (at, (out, expected)) in out.iter_mut().zip(&mut expected).enumerate() {
                if at == before {
                    *out = digest.to_vec();
                } else if at == next {
                    *expected = DIGEST;
                }
            }
        }
        let got = self.party.exchange(&out, &expected)?.await?;
        let told = Self::from(&got, before);
        if M::ACTIVE && Self::from(&got, next)[..] != Sha256::digest(&told)[..] {
            return Err(Stop::Cheated("the shares of an opened value contradict each other"));
        }
        let missing = self.read(before, &told)?;
        Ok(values.cells().iter().zip(missing.expose()).map(|([a, b], c)| *a + *b + *c).collect())
    }

    /// The part of element number `i` that the party at `position` sends: x_i + x_{i+1} if it is its turn; x_{i+1} if it
    /// was the turn of the party before, who holds the rest.
    fn turn(position: usize, i: usize, [first, second]: &[G::Scalar; 2]) -> Option<G::Scalar> {
        match (position + PARTIES - i % PARTIES) % PARTIES {
            0 => Some(*first + *second),
            1 => Some(*second),
            _ => None,
        }
    }

    /// Opens elements, believing what is sent: two parties send, taking turns, and everybody adds.
    pub(super) async fn open_elements(&self, logarithms: &Shared<Self>) -> Result<Vec<Element<Self>>, Stop> {
        let local = self.party.position();
        let turns = logarithms.cells().iter().enumerate().filter_map(|(i, cell)| Self::turn(local, i, cell));
        let mut own = Secret::new(Vec::with_capacity(logarithms.len()));
        own.expose_mut().extend(turns);
        let products = G::mul_base_batch(own.expose());
        let bytes: Vec<u8> = G::encode_batch(&products).iter().flat_map(|code| code.as_ref().to_vec()).collect();
        let nothing = [G::Scalar::ZERO; 2];
        let sends = |from: usize, i: usize| Self::turn(from, i, &nothing).is_some();
        let count = |from: usize| (0..logarithms.len()).filter(|i| sends(from, *i)).count();
        let expected: Vec<usize> = (0..PARTIES).map(|from| count(from) * G::ENCODED_LEN).collect();
        self.party.keep_together(logarithms.len() * G::ENCODED_LEN).await?;
        let got = self.party.exchange(&vec![bytes; PARTIES], &expected)?.await?;
        let mut sums = vec![G::identity(); logarithms.len()];
        for (from, bytes) in got.iter().enumerate() {
            let theirs = if from == local {
                products.clone()
            } else {
                let decoded = bytes.chunks(G::ENCODED_LEN).map(|code| G::decode_allowing_identity(code).ok());
                decoded.collect::<Option<_>>().ok_or_else(|| {
                    self.party.blame(from, Misbehaviour::NotAnElement);
                    Stop::Lost
                })?
            };
            let sums = sums.iter_mut().enumerate().filter(|(i, _)| sends(from, *i));
            for ((_, sum), element) in sums.zip(theirs) {
                *sum = *sum + element;
            }
        }
        Ok(sums)
    }

    /// Opens one value that is recognised as right: both others send the missing part, and one is enough.
    pub(super) async fn open_known(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&G::Scalar) -> bool + Send + Sync,
    ) -> Result<G::Scalar, Stop> {
        let [[first, second]] = value.cells()[..] else { return Err(Stop::Input("one value is recognised at a time")) };
        let (next, before) = (self.party.after(1), self.party.after(BEFORE));
        let mut out = Self::to(next, encode([&first]));
        if let Some(place) = out.get_mut(before) {
            *place = encode([&second]);
        }
        let mut gather = self.party.gather(&out, &[G::Scalar::ENCODED_LEN; PARTIES])?;
        let mut refuted = Vec::new();
        loop {
            let (from, bytes) = gather.next().await?;
            let Some(missing) = self.read(from, &bytes).ok().and_then(|part| part.expose().first().copied()) else {
                continue;
            };
            let value = first + second + missing;
            if recognise(&value) {
                for position in refuted {
                    self.party.blame(position, Misbehaviour::FalseShare);
                }
                return Ok(value);
            }
            refuted.push(from);
        }
    }
}
