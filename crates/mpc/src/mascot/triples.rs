//! The set-up, triples, and values with masked products: the machines of [`theta_ot::mascot`], whose messages travel in those of the program.

use theta_groups::{Group, Scalar, Secret, SecretRng};
use theta_names::ShareIndex;
use theta_ot::{
    Misuse,
    mascot::{self, Extending, Made, Mesh, Messages, Parties, Transfers},
};
use theta_rounds::Bug;

use super::{
    Check, MascotOf,
    inverses::Reserve,
    keys::{Keys, State},
};
use crate::{
    Party, Shared, Stop, Triples,
    pairs::{self, HASH, Lease, SetUps, fault},
};

/// The most triples at once: the longest message has 24 kB for each.
const AT_ONCE: usize = 40;

/// How many triples are made beside those that are needed where nobody checks products: one for a nonce, and one for the check of its product with a fixed
/// factor, so that a program that makes one signature makes triples once.
const SPARE: usize = 2;

/// What makes triples.
pub(super) type Maker<S> = mascot::Party<S>;

/// A session, and what makes its triples: on transfers that all have from before, the two rounds in which a MAC key is drawn; otherwise the three of
/// [`Mesh`], which leave transfers to later programs.
pub(super) async fn set_up<S: Scalar>(
    party: &Party,
    set_ups: &SetUps<Transfers>,
    whose: &[ShareIndex],
) -> Result<State<S>, Stop> {
    let (parties, lease) = pairs::session(party, set_ups.offer(whose)).await?;
    let session = parties.id();
    let (maker, lease) = match lease {
        Some(lease) => keyed(party, session, lease).await?,
        None => {
            let (maker, transfers) = mesh(party, parties).await?;
            let mut lease =
                transfers.and_then(|transfers| set_ups.keep(session, whose, transfers)).ok_or(Stop::Lost)?;
            lease.begin(|_| ()).ok_or(Stop::Lost)?;
            (maker, lease)
        }
    };
    let key = Secret::new(*maker.key().expose());
    let (ready, reserve) = (Secret::new(Vec::new()), Reserve::default());
    Ok(State::Keyed(Box::new(Keys { session, key, maker: Some(maker), ready, reserve, reveals: 0, lease })))
}

/// A MAC key on transfers from before.
async fn keyed<S: Scalar>(
    party: &Party,
    session: [u8; HASH],
    mut lease: Lease<Transfers>,
) -> Result<(Maker<S>, Lease<Transfers>), Stop> {
    let begun = lease.begin(|transfers| party.draw(|rng| transfers.key::<S>(session, rng))).ok_or(Stop::Lost)?;
    let (state, out) = begun.map_err(|misuse| pairs::misuse(&misuse))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(fault(party))?;
    let got = pairs::swap(party, out).await?;
    let (maker, _) = state.handle(&got).map_err(fault(party))?;
    Ok((maker, lease))
}

/// The three rounds of [`Mesh`].
async fn mesh<S: Scalar>(party: &Party, parties: Parties) -> Result<(Maker<S>, Option<Transfers>), Stop> {
    let (state, out) = party.draw(|rng| Mesh::<S>::begin(parties, rng)).map_err(|misuse| pairs::misuse(&misuse))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(fault(party))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(fault(party))?;
    let got = pairs::swap(party, out).await?;
    state.handle(&got).map_err(fault(party))
}

/// A batch, in nine rounds: the table in [`theta_ot::mascot`].
pub(super) async fn batch<S: Scalar>(
    party: &Party,
    begin: impl FnOnce(&mut SecretRng) -> Result<(Extending<S>, Messages), Misuse>,
) -> Result<(Maker<S>, Made<S>), Stop> {
    let stop = || fault(party);
    let (state, out) = party.draw(begin).map_err(|misuse| pairs::misuse(&misuse))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop())?;
    let got = pairs::swap(party, out).await?;
    state.finish(&got).map_err(stop())
}

impl<G: Group, C: Check> MascotOf<G, C> {
    /// Random triples, which are verified but for the products of MASCOT-. Whoever has to make some for MASCOT- makes a few more, so that who needs those
    /// has no rounds to wait for.
    pub(super) async fn triples_now(&self, count: usize) -> Result<Triples<Self>, Stop> {
        let mut maker = self.maker().await?;
        let mut ready = self.with_keys(|keys| core::mem::replace(&mut keys.ready, Secret::new(Vec::new())))?;
        let spare = if C::SACRIFICES { 0 } else { SPARE };
        if ready.expose().len() < count {
            let mut all = Secret::new(Vec::with_capacity(count + spare));
            all.expose_mut().extend_from_slice(ready.expose());
            ready = all;
        }
        while ready.expose().len() < count {
            let size = AT_ONCE.min(count + spare - ready.expose().len());
            let begin = |rng: &mut SecretRng| {
                if C::SACRIFICES { maker.triples(size, rng) } else { maker.unchecked_triples(size, rng) }
            };
            let (next, Made::Triples(triples)) = batch(&self.party, begin).await? else {
                return Err(Stop::Bug(Bug("a batch of triples made something else")));
            };
            maker = next;
            ready.expose_mut().extend_from_slice(triples.expose());
        }
        let (taken, left) = ready.expose().split_at_checked(count).unwrap_or_default();
        let triples = shared(taken);
        let left = Secret::new(left.to_vec());
        self.with_keys(|keys| {
            keys.ready = left;
            keys.maker = Some(maker);
        })?;
        Ok(triples)
    }
}

/// Shares of triples, by what they are.
fn shared<G: Group, C: Check>(triples: &[mascot::Triple<G::Scalar>]) -> Triples<MascotOf<G, C>> {
    let of = |which: usize| {
        let share = |triple: &mascot::Triple<G::Scalar>| {
            triple.get(which).map_or([G::Scalar::ZERO; 2], |share| [share.value, share.mac])
        };
        Shared::from_cells(triples.iter().map(share))
    };
    (of(0), of(1), of(2))
}
