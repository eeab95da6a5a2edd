//! The set-up and triples: the machines of [`theta_ot::mascot`], whose messages travel in those of the program.

use theta_groups::{Group, Scalar, Secret};
use theta_names::ShareIndex;
use theta_ot::mascot::{self, Fault, Mesh, Parties};

use super::{
    Mascot,
    keys::{Keys, State},
};
use crate::{
    Misbehaviour, Party, Shared, Stop, Triples,
    pairs::{self, SetUps},
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

/// What makes triples: the run of a set-up that all have from before, or of a new one.
pub(super) type Maker<S> = mascot::Party<S>;

/// A session, and what makes its triples; if the parties have no set-up from before, the three rounds of [`Mesh`] make one.
pub(super) async fn set_up<S: Scalar>(
    party: &Party,
    set_ups: &SetUps<Maker<S>>,
    whose: &[ShareIndex],
) -> Result<State<S>, Stop> {
    let (parties, lease) = pairs::session(party, set_ups.offer(whose)).await?;
    let session = parties.id();
    let lease = match lease {
        Some(lease) => Some(lease),
        None => set_ups.keep(session, whose, mesh(party, parties).await?),
    };
    let mut lease = lease.ok_or(Stop::Lost)?;
    let maker = lease.begin(|made| made.for_run(session)).ok_or(Stop::Lost)?;
    let key = Secret::new(*maker.key().expose());
    Ok(State::Keyed(Keys { session, key, maker: Some(maker), reveals: 0, lease }))
}

/// The three rounds of [`Mesh`].
async fn mesh<S: Scalar>(party: &Party, parties: Parties) -> Result<Maker<S>, Stop> {
    let (state, out) = party.draw(|rng| Mesh::<S>::begin(parties, rng)).map_err(|misuse| pairs::misuse(&misuse))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    state.handle(&got).map_err(stop(party))
}

/// A batch of triples, in nine rounds: the table in [`theta_ot::mascot`].
async fn batch<S: Scalar>(
    party: &Party,
    maker: mascot::Party<S>,
    count: usize,
) -> Result<(mascot::Party<S>, mascot::Triples<S>), Stop> {
    let stop = || stop(party);
    let (state, out) = party.draw(|rng| maker.triples(count, rng)).map_err(|misuse| pairs::misuse(&misuse))?;
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

impl<G: Group> Mascot<G> {
    /// Random triples, which are verified.
    pub(super) async fn triples_now(&self, count: usize) -> Result<Triples<Self>, Stop> {
        let empty = || Secret::new(Vec::with_capacity(count));
        let mut all: [Secret<Vec<[G::Scalar; 2]>>; 3] = [empty(), empty(), empty()];
        let mut maker = self.maker().await?;
        let mut made = 0;
        while made < count {
            let size = AT_ONCE.min(count - made);
            let (next, triples) = batch(&self.party, maker, size).await?;
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
