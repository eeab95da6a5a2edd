//! Sums of parts that the parties have, shown to all of them.
//!
//! Few sums are made by all: each sends its parts to all others, in one round. Many are made by one party each, in turn: all send it their parts, and it
//! tells all the sum, which takes two rounds and fewer bytes.

use theta_groups::{Scalar, Secret};

use super::{encode, read, zeros};
use crate::{Party, Stop};

/// From so many sums on, they are made by one party each.
const MANY: usize = 64;

/// Shows the sums of what the parties at the first positions have, `senders` of them; others have nothing to add. Whatever is sent is believed.
///
/// # Errors
/// [`Stop`].
pub(crate) async fn open_sums<S: Scalar>(
    party: &Party,
    senders: usize,
    parts: &Secret<Vec<S>>,
) -> Result<Vec<S>, Stop> {
    let sums = Sums { party, senders };
    party.keep_together(parts.expose().len() * S::ENCODED_LEN).await?;
    if parts.expose().len() < MANY { sums.by_all(parts).await } else { sums.by_turns(parts).await }
}

struct Sums<'a> {
    party: &'a Party,
    senders: usize,
}

impl Sums<'_> {
    const fn sends(&self, position: usize) -> bool {
        position < self.senders
    }

    /// What this party sends of its parts, if it has any.
    fn write<'s, S: Scalar>(&self, parts: impl Iterator<Item = &'s S>) -> Vec<u8> {
        if self.sends(self.party.position()) { encode(parts) } else { Vec::new() }
    }

    /// Adds what others have sent to the own parts.
    fn add<S: Scalar>(&self, sums: &mut [S], got: &[bytes::Bytes]) -> Result<(), Stop> {
        for (position, bytes) in got.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            for (sum, part) in sums.iter_mut().zip(read(self.party, position, bytes)?.expose()) {
                *sum += *part;
            }
        }
        Ok(())
    }

    async fn by_all<S: Scalar>(&self, parts: &Secret<Vec<S>>) -> Result<Vec<S>, Stop> {
        let n = self.party.n();
        let len = parts.expose().len() * S::ENCODED_LEN;
        let expected: Vec<usize> = (0..n).map(|position| if self.sends(position) { len } else { 0 }).collect();
        let got = self.party.exchange(&vec![self.write(parts.expose().iter()); n], &expected)?.await?;
        let mut sums = parts.expose().clone();
        self.add(&mut sums, &got)?;
        Ok(sums)
    }

    async fn by_turns<S: Scalar>(&self, parts: &Secret<Vec<S>>) -> Result<Vec<S>, Stop> {
        let (n, count, local) = (self.party.n(), parts.expose().len(), self.party.position());
        let turn = |position: usize| (position..count).step_by(n);
        let bytes_of = |position: usize| turn(position).len() * S::ENCODED_LEN;
        let own = |position: usize| turn(position).filter_map(|i| parts.expose().get(i));
        let out: Vec<Vec<u8>> = (0..n).map(|to| self.write(own(to))).collect();
        let expected: Vec<usize> = (0..n).map(|from| if self.sends(from) { bytes_of(local) } else { 0 }).collect();
        let got = self.party.exchange(&out, &expected)?.await?;
        let mut mine: Vec<S> = own(local).copied().collect();
        self.add(&mut mine, &got)?;
        let told = self.party.exchange(&vec![encode(&mine); n], &(0..n).map(bytes_of).collect::<Vec<_>>())?.await?;
        let mut sums = core::mem::take(zeros(count).expose_mut());
        for (position, bytes) in told.iter().enumerate() {
            let theirs = if position == local { Secret::new(mine.clone()) } else { read(self.party, position, bytes)? };
            for (i, value) in turn(position).zip(theirs.expose()) {
                if let Some(sum) = sums.get_mut(i) {
                    *sum = *value;
                }
            }
        }
        Ok(sums)
    }
}
