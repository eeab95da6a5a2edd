//! Oblivious transfer with each other party, in both directions, and products of all pairs.

use std::collections::BTreeMap;

use bytes::Bytes;
use theta_groups::{Ristretto255, Scalar, Secret};
use theta_names::ShareIndex;
use theta_ot::extension::{self, Grown, ReceivedTransfers};
use theta_ot::gilboa::{self, TRANSFERS};
use theta_ot::mascot::{FAST, Fixing, Messages, Pairs, Parties, Setting};
use theta_ot::{Choices, Session, base};
use theta_rounds::Bug;

use crate::{
    Party, Stop,
    pairs::{self, Lease, SetUps},
};

/// The most products in one message: 8 kB each, so that two parts of a program can multiply at once.
pub(super) const AT_ONCE: usize = 63;
/// The most products with a fixed factor in one message: 4 kB each.
pub(super) const BY_FACTOR_AT_ONCE: usize = 126;
/// The field size of the extension, as in [`theta_ot::mascot`].
const K: u8 = 4;

/// Transfers that were made with our choices, by party.
pub(super) type Chosen = BTreeMap<ShareIndex, ReceivedTransfers>;

/// Oblivious transfer with each other party. Batches are numbered in both directions, so those of the same round are handled in the
/// order in which they were sent.
pub struct Links {
    parties: Parties,
    pairs: Pairs,
    /// How many factors were fixed.
    fixed: u64,
}

/// What is missing only if another party's part is lost.
const MISSING: Stop = Stop::Bug(Bug("a party without transfers"));

impl Links {
    /// The run of a set-up that all have from before, or of a new one.
    pub(super) async fn set_up(
        party: &Party,
        set_ups: &SetUps<Self>,
        whose: &[ShareIndex],
    ) -> Result<(Self, Lease<Self>), Stop> {
        let (session, lease) = pairs::session(party, set_ups.offer(whose)).await?;
        let lease = match lease {
            Some(lease) => Some(lease),
            None => set_ups.keep(session.id(), whose, Self::make(party, session.clone()).await?),
        };
        let mut lease = lease.ok_or(Stop::Lost)?;
        let links = lease.begin(|made| made.for_run(session)).ok_or(Stop::Lost)?;
        Ok((links, lease))
    }

    /// Those of a run, with seeds of its own.
    fn for_run(&self, run: Parties) -> Self {
        let id = run.id();
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|(peer, (sender, receiver))| (*peer, (sender.for_run(&id), receiver.for_run(&id))));
        Self { parties: run, pairs: pairs.collect(), fixed: 0 }
    }

    /// The question of the base transfers, and their answer.
    async fn make(party: &Party, session: Parties) -> Result<Self, Stop> {
        let to = |peer| Session::new(session.id(), session.me(), peer).map_err(|it| pairs::misuse(&it));
        let (mut setups, mut out) = (BTreeMap::new(), Messages::new());
        for peer in session.others() {
            let begun = party
                .draw(|rng| extension::Setup::<Ristretto255>::new(to(peer)?, K, rng).map_err(|it| pairs::misuse(&it)));
            let (setup, ask) = begun?;
            setups.insert(peer, setup);
            out.insert(peer, ask.0);
        }
        let asked = pairs::swap(party, out).await?;
        let (mut receivers, mut out) = (BTreeMap::new(), Messages::new());
        for (peer, ask) in asked {
            let ask = base::Ask(ask.into());
            let session = to(peer)?.reversed();
            let grown = party.draw(|rng| extension::Receiver::new::<Ristretto255>(session, K, &ask, rng));
            let (receiver, grown) = grown.map_err(pairs::stop(party, peer))?;
            receivers.insert(peer, receiver);
            out.insert(peer, grown.0);
        }
        let mut pairs = Pairs::new();
        for (peer, grown) in pairs::swap(party, out).await? {
            let (setup, receiver) = (setups.remove(&peer).ok_or(MISSING)?, receivers.remove(&peer).ok_or(MISSING)?);
            let sender = setup.finish(&Grown(grown.into())).map_err(pairs::stop(party, peer))?;
            pairs.insert(peer, (sender, receiver));
        }
        Ok(Self { parties: session, pairs, fixed: 0 })
    }

    /// Begins to fix our summand of a factor.
    pub(super) fn fix<S: Scalar>(&mut self, party: &Party, factor: Secret<S>) -> Result<(Setting<S>, Messages), Stop> {
        let number = self.fixed;
        self.fixed += 1;
        let begun = party.draw(|rng| Setting::begin(&self.parties, &mut self.pairs, factor, (number, FAST), rng));
        begun.map_err(|it| pairs::misuse(&it))
    }

    /// Opens the trees of a factor that is being fixed.
    pub(super) fn open<S: Scalar>(
        &mut self,
        party: &Party,
        setting: Setting<S>,
        messages: &Messages<Bytes>,
    ) -> Result<(Fixing<S>, Messages), Stop> {
        setting.handle(&mut self.pairs, messages).map_err(pairs::fault(party))
    }

    /// Transfers from all others, with the bits of a as choices.
    pub(super) fn choose<S: Scalar>(&mut self, party: &Party, a: &Secret<Vec<S>>) -> Result<(Chosen, Messages), Stop> {
        let (mut chosen, mut out) = (Chosen::new(), Messages::new());
        for (peer, (sender, receiver)) in core::mem::take(&mut self.pairs) {
            let extended = party.draw(|rng| receiver.extend(Choices::of_scalars(a.expose()), rng));
            let (receiver, extension, transfers) = extended.map_err(|it| pairs::misuse(&it))?;
            self.pairs.insert(peer, (sender, receiver));
            chosen.insert(peer, transfers);
            out.insert(peer, extension.0);
        }
        Ok((chosen, out))
    }

    /// What makes products of the others' a and our b of their transfers. Our summands are added to `sums`.
    pub(super) fn send<S: Scalar>(
        &mut self,
        party: &Party,
        extensions: &Messages<Bytes>,
        b: &Secret<Vec<S>>,
        sums: &mut Secret<Vec<S>>,
    ) -> Result<Messages, Stop> {
        let mut out = Messages::new();
        for (peer, extension) in extensions {
            let (sender, receiver) = self.pairs.remove(peer).ok_or(MISSING)?;
            let extended = sender.extend(TRANSFERS * b.expose().len(), extension);
            let (sender, transfers) = extended.map_err(pairs::stop(party, *peer))?;
            self.pairs.insert(*peer, (sender, receiver));
            let (corrections, summands) = gilboa::send(transfers, b.expose()).map_err(|it| pairs::misuse(&it))?;
            add(sums, &summands);
            out.insert(*peer, corrections.0);
        }
        Ok(out)
    }

    /// Adds our summands of the products of our a and the others' b to `sums`.
    pub(super) fn receive<S: Scalar>(
        party: &Party,
        mut chosen: Chosen,
        corrections: &Messages<Bytes>,
        sums: &mut Secret<Vec<S>>,
    ) -> Result<(), Stop> {
        for (peer, corrections) in corrections {
            let transfers = chosen.remove(peer).ok_or(MISSING)?;
            let summands = gilboa::receive::<S>(transfers, corrections);
            add(sums, &summands.map_err(pairs::stop(party, *peer))?);
        }
        Ok(())
    }
}

fn add<S: Scalar>(sums: &mut Secret<Vec<S>>, summands: &Secret<Vec<S>>) {
    sums.expose_mut().iter_mut().zip(summands.expose()).for_each(|(sum, summand)| *sum += *summand);
}
