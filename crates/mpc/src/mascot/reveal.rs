//! Secrets that everybody commits to before anybody shows its own: coins, and the summands of a check.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use subtle::ConstantTimeEq;
use theta_groups::{Group, Secret, Transcript};

use super::{Check, MascotOf};
use crate::{
    Misbehaviour, Stop,
    pairs::{HASH, broadcast},
};

/// What each party showed, in order.
type Shown = Vec<Vec<u8>>;

impl<G: Group, C: Check> MascotOf<G, C> {
    /// Shows `open` and a commitment to `secret`, which has at least 32 random bytes; and when all have done so, the secret. Returns
    /// what all showed, and their secrets. Two rounds.
    ///
    /// A secret is shown with a hash of all that was received in the round before, so that it leaves when its owner has received that,
    /// and counts where all have received the same. So nobody who learns an honest party's secret can still choose what any honest
    /// party receives of the round before.
    pub(super) async fn reveal(
        &self,
        place: &'static str,
        open: Vec<u8>,
        secret: &Secret<Vec<u8>>,
    ) -> Result<(Shown, Shown), Stop> {
        let (session, number) = self.with_keys(|keys| {
            keys.reveals += 1;
            (keys.session, keys.reveals)
        })?;
        let begin = |domain: &'static str| {
            let transcript = Transcript::new(domain).with("session", &session).with("number", &number.to_be_bytes());
            transcript.with("place", place.as_bytes())
        };
        let commitment = |position: usize, secret: &[u8]| {
            let position = u64::try_from(position).unwrap_or(u64::MAX).to_be_bytes();
            let transcript = begin("theta/mpc/mascot/commitment/v1").with("committed", &position);
            transcript.with("secret", secret).finish32()
        };
        let len = open.len();
        let mut message = open;
        message.extend_from_slice(&commitment(self.party.position(), secret.expose()));
        let mut shown = broadcast(&self.party, message).await?;
        let mut view = begin("theta/mpc/mascot/view/v1");
        shown.iter().for_each(|bytes| view.append("shown", bytes));
        let view = view.finish32();

        let revealed = broadcast(&self.party, [view.as_slice(), secret.expose()].concat()).await?;
        let mut secrets = Vec::with_capacity(revealed.len());
        for (from, (bytes, shown)) in revealed.iter().zip(&mut shown).enumerate() {
            let (seen, opening) = bytes.split_at_checked(HASH).unwrap_or_default();
            if seen != view {
                return Err(Stop::Cheated("not all received the same"));
            }
            let committed = shown.split_off(len.min(shown.len()));
            if !bool::from(commitment(from, opening).ct_eq(&committed)) {
                self.party.blame(from, Misbehaviour::FalseOpening);
                return Err(Stop::Lost);
            }
            secrets.push(opening.to_vec());
        }
        Ok((shown, secrets))
    }

    /// Shows `open`; and when all have, tosses coins that nobody chose: `count` weights of 128 bits.
    pub(super) async fn show_and_toss(&self, open: Vec<u8>, count: usize) -> Result<(Shown, Vec<u128>), Stop> {
        let seed = self.random_bytes();
        let (shown, seeds) = self.reveal("coins", open, &seed).await?;
        let mut coins = Transcript::new("theta/mpc/mascot/coins/v1");
        seeds.iter().for_each(|seed| coins.append("seed", seed));
        let mut rng = ChaCha20Rng::from_seed(coins.finish32());
        let weights = (0..count).map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()));
        Ok((shown, weights.collect()))
    }

    /// What hides a commitment's secret, or is one.
    pub(super) fn random_bytes(&self) -> Secret<Vec<u8>> {
        let mut bytes = Secret::new(vec![0; HASH]);
        self.party.draw(|rng| rng.fill_bytes(bytes.expose_mut()));
        bytes
    }
}
