//! The set-up and triples: the machines of [`theta_ot::mascot`], whose messages travel in those of the program.

use theta_groups::{Group, Scalar, Secret};
use theta_ot::mascot::{self, Fault, Mesh};

use super::{
    Mascot,
    keys::{Keys, State},
};
use crate::{Misbehaviour, Party, Shared, Stop, Triples, pairs};

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

/// A session, and the three rounds of [`Mesh`].
pub(super) async fn set_up<S: Scalar>(party: &Party) -> Result<State<S>, Stop> {
    let parties = pairs::session(party).await?;
    let session = parties.id();
    let (state, out) = party.draw(|rng| Mesh::<S>::begin(parties, rng)).map_err(|misuse| pairs::misuse(&misuse))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = party.draw(|rng| state.handle(&got, rng)).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    let (state, out) = state.handle(&got).map_err(stop(party))?;
    let got = pairs::swap(party, out).await?;
    let maker = state.handle(&got).map_err(stop(party))?;
    let key = Secret::new(*maker.key().expose());
    Ok(State::Keyed(Keys { session, key, maker: Some(maker), reveals: 0 }))
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
