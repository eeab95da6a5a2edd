//! An opening of x - u for random u, where whoever shows a false share is found.
//!
//! The shares of an opened value do not tell which of them is false where n = 2t + 1. But x G of each party's share is known, and u was dealt: so when an
//! opening has failed, each dealer shows what it dealt, times G, and d_j G = x_j G - u_j G is looked at for each party j (Feldman, FOCS 1987, and the
//! comparison with what was dealt). Nothing is shown that was not public: u G = X - d G. `spec/mpc.md`, "Masked openings", has the argument.
//!
//! 1. All show their shares to all. 2. All tell all the digest that they confirm, and the first value whose shares contradict each other, which is a claim. If there is
//!    no claim at anybody, that is all. Else 3. each shows its dealings, times G, for the value that each party claims; 4. all tell all hashes of what was shown, whose
//!    dealings are not those that they were dealt, and whose shares were false. `findings.rs` says what follows.

use theta_groups::{Group, Scalar as _, Secret};
use theta_rounds::Bug;

use super::{
    Shamir,
    findings::{Statement, Verdict, Views},
    opening::CONTRADICTION,
};
use crate::{Misbehaviour, Scalar, Security, Shared, Stop};

/// The first random values of a batch, as they were dealt: they mask what is opened.
pub(super) struct Record<S: theta_groups::Scalar> {
    /// How many there are.
    pub(super) count: usize,
    /// Of each polynomial of this party's what it chose: its value at 0 and at the t parties after it.
    pub(super) chosen: Secret<Vec<S>>,
    /// This party's shares of each dealer's polynomials, by dealer.
    pub(super) received: Vec<Secret<Vec<S>>>,
}

/// The claim of a party at which nothing contradicts anything.
pub(super) const NOTHING: u32 = u32::MAX;
const DIGEST: usize = 32;

/// A factor of which masks were taken away, and what all confirm with the opening.
pub(super) struct Factor<'a, G: Group> {
    /// G times each party's share of it, by position.
    pub(super) points: &'a [G::Element],
    /// What all have confirmed before already.
    pub(super) digest: [u8; DIGEST],
}

impl<G: Group, M: Security> Shamir<G, M> {
    /// Opens values, each of them a factor less the mask at its place in the record, and confirms the digest.
    pub(super) async fn open_on_record(
        &self,
        values: &Shared<Self>,
        factor: &Factor<'_, G>,
        record: Record<G::Scalar>,
    ) -> Result<Vec<Scalar<Self>>, Stop> {
        let shares = self.show_all(values).await?;
        let opened: Vec<Option<G::Scalar>> = self.opened(&shares, values.len()).collect();
        let claims = self.claims(opened.iter().position(Option::is_none), factor, record.count).await?;
        if claims.iter().all(|claim| *claim == NOTHING) {
            return opened.into_iter().collect::<Option<Vec<_>>>().ok_or(CONTRADICTION);
        }
        self.find_false_shares(&shares, &claims, factor, &record).await?;
        Err(CONTRADICTION)
    }

    /// Step 2: what each party claims, by position.
    async fn claims(&self, own: Option<usize>, factor: &Factor<'_, G>, count: usize) -> Result<Vec<u32>, Stop> {
        let own = own.and_then(|place| u32::try_from(place).ok()).unwrap_or(NOTHING);
        let said = [&factor.digest[..], &own.to_be_bytes()].concat();
        let heard = self.party.meet(&said).await?;
        let mut claims = Vec::with_capacity(heard.len());
        for (position, bytes) in heard.iter().enumerate() {
            let bytes = if position == self.party.position() { &said[..] } else { bytes };
            let (digest, claim) =
                bytes.split_at_checked(DIGEST).ok_or(Stop::Bug(Bug("a claim of another length than all expect")))?;
            let claim = u32::from_be_bytes(claim.try_into().unwrap_or([0xff; 4]));
            // It has confirmed this digest before; and nobody can claim what there is not.
            if digest != factor.digest
                || claim != NOTHING && usize::try_from(claim).map_or(true, |claim| claim >= count)
            {
                self.party.blame(position, Misbehaviour::FalseConfirmation);
                return Err(Stop::Lost);
            }
            claims.push(claim);
        }
        Ok(claims)
    }

    /// Steps 3 and 4. Blames whoever has lied for certain, and notes of whom one has.
    async fn find_false_shares(
        &self,
        shares: &[Vec<G::Scalar>],
        claims: &[u32],
        factor: &Factor<'_, G>,
        record: &Record<G::Scalar>,
    ) -> Result<(), Stop> {
        let (n, local) = (self.party.n(), self.party.position());
        // A liar may have made its claim to some alone.
        if !self.party.branches_off() {
            return Err(CONTRADICTION);
        }
        let bytes = self.statement(claims, record);
        let got = self.party.exchange(&vec![bytes.clone(); n], &vec![bytes.len(); n])?.await?;
        let mut statements = Vec::with_capacity(n);
        for (from, theirs) in got.iter().enumerate() {
            let theirs = if from == local { &bytes[..] } else { theirs };
            let statement = Statement::<G>::decode(n, theirs);
            statements.push(statement.ok_or_else(|| {
                self.party.blame(from, Misbehaviour::NotAnElement);
                Stop::Lost
            })?);
        }
        let views = Views::new(self, factor.points, claims, record, statements);
        let own = views.verdict(shares);
        let said = own.encode();
        let heard = self.party.exchange(&vec![said.clone(); n], &vec![said.len(); n])?.await?;
        let said_by =
            |(from, theirs): (usize, &bytes::Bytes)| Verdict::decode(n, if from == local { &said } else { theirs });
        let verdicts: Vec<Verdict> = heard.iter().enumerate().map(said_by).collect();
        let findings = views.findings(&verdicts);
        findings.liars.iter().for_each(|liar| self.party.blame(*liar, Misbehaviour::FalseShare));
        findings.disputes.iter().for_each(|[one, other]| self.party.dispute(*one, *other));
        Ok(())
    }

    /// What this party heard each claim, and its dealings for the values claimed, times G. As long whatever was claimed, as parties may have heard different claims.
    fn statement(&self, claims: &[u32], record: &Record<G::Scalar>) -> Vec<u8> {
        let chosen = self.party.t() + 1;
        let mut own = Secret::new(vec![G::Scalar::ZERO; claims.len() * chosen]);
        for (claim, own) in claims.iter().zip(own.expose_mut().chunks_mut(chosen)) {
            if *claim != NOTHING {
                let start = self.batch_of(*claim).0 * chosen;
                let dealt = record.chosen.expose().iter().skip(start);
                own.iter_mut().zip(dealt).for_each(|(own, dealt)| *own = *dealt);
            }
        }
        Statement::<G>::encode(claims, &G::mul_base_batch(own.expose()))
    }

    /// In which polynomials a random value comes, and in which row of those that are extracted from them.
    pub(super) fn batch_of(&self, claim: u32) -> (usize, usize) {
        let rows = self.coefficients.vandermonde.len().max(1);
        let place = usize::try_from(claim).unwrap_or(usize::MAX);
        (place.checked_div(rows).unwrap_or(0), place.checked_rem(rows).unwrap_or(0))
    }
}
