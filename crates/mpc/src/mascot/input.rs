//! Inputs: a random value that its dealer alone is told, and its difference to the input.
//!
//! What the dealer is told has no MAC that it could check by itself. So it is told one more random value, m; then coins give weights, and
//! the weighted sum of all values, and m, is opened with all checks. It must be the same sum of what the dealer was told. m hides it from the others.

use sha2::{Digest, Sha256};
use theta_groups::{Group, Scalar as _, Secret};
use theta_rounds::Bug;

use super::{Check, MascotOf};
use crate::{
    BlackBox, Misbehaviour, Scalar, Shared, Stop,
    blackbox::{decode, encode},
    pairs::{Scalars, agree, broadcast},
};

impl<G: Group, C: Check> MascotOf<G, C> {
    /// The dealer passes `count` values, the others none.
    pub(super) async fn deal(
        &self,
        dealer: usize,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        let n = self.party.n();
        let masks = self.random_now(count + 1).await?;
        let told = self.tell(dealer, &masks).await?;

        let (_, weights) = self.show_and_toss(Vec::new(), count).await?;
        let mut weights: Vec<G::Scalar> = weights.into_iter().map(G::Scalar::from_u128).collect();
        weights.push(G::Scalar::ONE);
        let opened = self.open_scalars(&masks.times_each(&weights).sum()).await?;
        let (masks, _) = masks.split(count);

        let len = count * G::Scalar::ENCODED_LEN;
        let bytes = if let (Some(values), Some(told)) = (values, told) {
            let sum = told.expose().iter().zip(&weights).map(|(told, weight)| *told * *weight).sum::<G::Scalar>();
            if opened.first() != Some(&sum) {
                return Err(Stop::Cheated("a party told the dealer a false share"));
            }
            let differences = values.expose().iter().zip(told.expose()).map(|(value, told)| *value - *told);
            let bytes = encode(&differences.collect::<Vec<_>>());
            self.party.exchange(&vec![bytes.clone(); n], &vec![0; n])?.await?;
            bytes
        } else {
            let expected: Vec<usize> = (0..n).map(|from| if from == dealer { len } else { 0 }).collect();
            let got = self.party.exchange(&vec![Vec::new(); n], &expected)?.await?;
            got.get(dealer).map(|bytes| bytes.to_vec()).unwrap_or_default()
        };
        agree(&self.party, Sha256::digest(&bytes).into()).await?;
        let differences: Vec<G::Scalar> = decode(&bytes).ok_or_else(|| {
            self.party.blame(dealer, Misbehaviour::NotAScalar);
            Stop::Lost
        })?;
        Ok(&masks + &self.constants(&differences))
    }

    /// The sum of what all parties put in, each a summand that nobody else learns: [r] + (sum of y_i - r_i), r a random value, whose summand r_i
    /// hides y_i. Nobody is held to any y_i: a party may put in what it likes, and even choose it when it has seen the others' differences,
    /// so that the sum is right only if it is checked against something that is known of it.
    ///
    /// # Errors
    /// [`Stop`].
    pub(crate) async fn input_summands(&self, summand: &Secret<G::Scalar>) -> Result<Shared<Self>, Stop> {
        self.guard(self.add_up(summand)).await
    }

    async fn add_up(&self, summand: &Secret<G::Scalar>) -> Result<Shared<Self>, Stop> {
        let random = self.random_now(1).await?;
        let [[own, _]] = random.cells()[..] else { return Err(Stop::Bug(Bug("one random value was asked for"))) };
        let shown = broadcast(&self.party, encode([&(*summand.expose() - own)])).await?;
        let mut view = Sha256::new();
        shown.iter().for_each(|bytes| view.update(bytes));
        agree(&self.party, view.finalize().into()).await?;
        let differences = Scalars::<G::Scalar>::sum(&self.party, 1, shown.iter().map(Vec::as_slice))?.0;
        Ok(&random + &self.constants(&differences))
    }

    /// Opens values to the dealer alone, unchecked.
    async fn tell(&self, dealer: usize, values: &Shared<Self>) -> Result<Option<Secret<Vec<G::Scalar>>>, Stop> {
        let n = self.party.n();
        self.party.keep_together(values.len() * G::Scalar::ENCODED_LEN).await?;
        let own = encode(values.cells().iter().map(|[share, _]| share));
        if dealer != self.party.position() {
            let out: Vec<Vec<u8>> = (0..n).map(|to| if to == dealer { own.clone() } else { Vec::new() }).collect();
            self.party.exchange(&out, &vec![0; n])?.await?;
            return Ok(None);
        }
        let got = self.party.exchange(&vec![Vec::new(); n], &vec![own.len(); n])?.await?;
        let local = self.party.position();
        let shown = got.iter().enumerate().map(|(from, bytes)| if from == local { own.as_slice() } else { &bytes[..] });
        Ok(Some(Secret::new(Scalars::sum(&self.party, values.len(), shown)?.0)))
    }
}
