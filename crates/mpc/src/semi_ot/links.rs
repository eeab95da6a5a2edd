//! Oblivious transfer with each other party, in both directions, and products of all pairs.

use std::collections::BTreeMap;

use theta_groups::{Ristretto255, Scalar, Secret};
use theta_names::ShareIndex;
use theta_ot::extension::{self, Extension, Grown, ReceivedTransfers};
use theta_ot::gilboa::{self, Corrections, TRANSFERS};
use theta_ot::mascot::{Messages, Parties};
use theta_ot::{Choices, Session, base};
use theta_rounds::Bug;

use crate::{
    Party, Stop,
    pairs::{self, Lease, SetUps},
};

/// The most products in one message: 8 kB each, so that two parts of a program can multiply at once.
pub(super) const AT_ONCE: usize = 48;
/// The field size of the extension, as in [`theta_ot::mascot`].
const K: u8 = 4;

/// Transfers that were made with our choices, by party.
pub(super) type Chosen = BTreeMap<ShareIndex, ReceivedTransfers>;

/// Oblivious transfer with each other party. Batches are numbered in both directions, so those of the same round are handled in the
/// order in which they were sent.
pub struct Links {
    senders: BTreeMap<ShareIndex, extension::Sender>,
    receivers: BTreeMap<ShareIndex, extension::Receiver>,
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
        let id = session.id();
        let lease = match lease {
            Some(lease) => Some(lease),
            None => set_ups.keep(id, whose, Self::make(party, session).await?),
        };
        let mut lease = lease.ok_or(Stop::Lost)?;
        let links = lease.begin(|made| made.for_run(&id)).ok_or(Stop::Lost)?;
        Ok((links, lease))
    }

    /// Those of a run, with seeds of its own.
    fn for_run(&self, run: &[u8; pairs::HASH]) -> Self {
        Self {
            senders: self.senders.iter().map(|(peer, sender)| (*peer, sender.for_run(run))).collect(),
            receivers: self.receivers.iter().map(|(peer, receiver)| (*peer, receiver.for_run(run))).collect(),
        }
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
            let ask = base::Ask(ask);
            let session = to(peer)?.reversed();
            let grown = party.draw(|rng| extension::Receiver::new::<Ristretto255>(session, K, &ask, rng));
            let (receiver, grown) = grown.map_err(pairs::stop(party, peer))?;
            receivers.insert(peer, receiver);
            out.insert(peer, grown.0);
        }
        let mut senders = BTreeMap::new();
        for (peer, grown) in pairs::swap(party, out).await? {
            let setup = setups.remove(&peer).ok_or(MISSING)?;
            senders.insert(peer, setup.finish(&Grown(grown)).map_err(pairs::stop(party, peer))?);
        }
        Ok(Self { senders, receivers })
    }

    /// Transfers from all others, with the bits of a as choices.
    pub(super) fn choose<S: Scalar>(&mut self, party: &Party, a: &Secret<Vec<S>>) -> Result<(Chosen, Messages), Stop> {
        let (mut chosen, mut out, mut next) = (Chosen::new(), Messages::new(), BTreeMap::new());
        for (peer, receiver) in core::mem::take(&mut self.receivers) {
            let extended = party.draw(|rng| receiver.extend(Choices::of_scalars(a.expose()), rng));
            let (receiver, extension, transfers) = extended.map_err(|it| pairs::misuse(&it))?;
            next.insert(peer, receiver);
            chosen.insert(peer, transfers);
            out.insert(peer, extension.0);
        }
        self.receivers = next;
        Ok((chosen, out))
    }

    /// What makes products of the others' a and our b of their transfers. Our summands are added to `sums`.
    pub(super) fn send<S: Scalar>(
        &mut self,
        party: &Party,
        extensions: &Messages,
        b: &Secret<Vec<S>>,
        sums: &mut Secret<Vec<S>>,
    ) -> Result<Messages, Stop> {
        let mut out = Messages::new();
        for (peer, extension) in extensions {
            let sender = self.senders.remove(peer).ok_or(MISSING)?;
            let extended = sender.extend(TRANSFERS * b.expose().len(), &Extension(extension.clone()));
            let (sender, transfers) = extended.map_err(pairs::stop(party, *peer))?;
            self.senders.insert(*peer, sender);
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
        corrections: &Messages,
        sums: &mut Secret<Vec<S>>,
    ) -> Result<(), Stop> {
        for (peer, corrections) in corrections {
            let transfers = chosen.remove(peer).ok_or(MISSING)?;
            let summands = gilboa::receive::<S>(transfers, &Corrections(corrections.clone()));
            add(sums, &summands.map_err(pairs::stop(party, *peer))?);
        }
        Ok(())
    }
}

fn add<S: Scalar>(sums: &mut Secret<Vec<S>>, summands: &Secret<Vec<S>>) {
    sums.expose_mut().iter_mut().zip(summands.expose()).for_each(|(sum, summand)| *sum += *summand);
}
