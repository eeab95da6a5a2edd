//! The set-up and triples: the machines of [`theta_ot::mascot`], whose messages travel in those of the program.

use theta_groups::{Group, Scalar, Secret};
use theta_names::ShareIndex;
use theta_ot::mascot::{self, Fault, Mesh, Parties, Transfers};

use super::{
    Check, MascotOf,
    keys::{Keys, State},
};
use crate::{
    Misbehaviour, Party, Shared, Stop, Triples,
    pairs::{self, HASH, Lease, SetUps},
};

/// The most triples at once: the longest message has 24 kB for each.
const AT_ONCE: usize = 32;

/// Who is blamed for a fault, if that can be known.
fn stop(party: &Party) -> impl Fn(Fault) -> Stop + '_ {
    |fault| match fault {
        Fault::Party { party: whom, misbehaviour } => pairs::blame(party, whom, &misbehaviour),
        Fault::Commitment(whom) => {
            party.blame(whom.position(), Misbehaviour::FalseOpening);
            Stop::Lost
        }
        Fault::Disagreement(_) => Stop::Cheated("not all received the same"),
        Fault::Macs => Stop::Cheated("the MACs of triples fail their check"),
        Fault::Ours(misuse) => pairs::misuse(&misuse),
    }
}

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
    Ok(State::Keyed(Keys { session, key, maker: Some(maker), reveals: 0, lease }))
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
    let (state, out) = state.handle(&got).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    let (maker, _) = state.handle(&got).map_err(stop(party))?;
    Ok((maker, lease))
}

/// The three rounds of [`Mesh`].
async fn mesh<S: Scalar>(party: &Party, parties: Parties) -> Result<(Maker<S>, Option<Transfers>), Stop> {
    let (state, out) = party.draw(|rng| Mesh::<S>::begin(parties, rng)).map_err(|misuse| pairs::misuse(&misuse))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    state.handle(&got).map_err(stop(party))
}

/// A batch of triples, in nine rounds: the table in [`theta_ot::mascot`].
async fn batch<S: Scalar, C: Check>(
    party: &Party,
    maker: mascot::Party<S>,
    count: usize,
) -> Result<(mascot::Party<S>, mascot::Triples<S>), Stop> {
    let stop = || stop(party);
    let begin = if C::SACRIFICES { Maker::triples } else { Maker::unchecked_triples };
    let (state, out) = party.draw(|rng| begin(maker, count, rng)).map_err(|misuse| pairs::misuse(&misuse))?;
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
    /// Random triples, which are verified but for the products of MASCOT-.
    pub(super) async fn triples_now(&self, count: usize) -> Result<Triples<Self>, Stop> {
        let empty = || Secret::new(Vec::with_capacity(count));
        let mut all: [Secret<Vec<[G::Scalar; 2]>>; 3] = [empty(), empty(), empty()];
        let mut maker = self.maker().await?;
        let mut made = 0;
        while made < count {
            let size = AT_ONCE.min(count - made);
            let (next, triples) = batch::<_, C>(&self.party, maker, size).await?;
            maker = next;
            for triple in triples.expose() {
                for (list, share) in all.iter_mut().zip(triple) {
                    list.expose_mut().push([share.value, share.mac]);
                }
            }
            made += size;
        }
        self.with_keys(|keys| keys.maker = Some(maker))?;
        let [a, b, c] = all.map(|list| Shared::from_cells(list.expose().iter().copied()));
        Ok((a, b, c))
    }
}
