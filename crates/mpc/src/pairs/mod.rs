//! What black boxes on oblivious transfer have in common: a fresh session, messages of pairs, sums of what all show.

mod room;
mod set_ups;
mod shown;

use bytes::Bytes;
use rand_core::Rng;
use theta_groups::Transcript;
use theta_names::ShareIndex;
use theta_ot::mascot::{Messages, Parties};
use theta_rounds::Bug;

use crate::{MOST_PARTIES, Misbehaviour, Party, Stop};

pub use room::SetUpRoom;
pub(crate) use set_ups::Lease;
pub use set_ups::{Cheats, SetUps};
pub(crate) use shown::{Elements, Scalars, encode_elements};

/// Bytes of a session's id, of a hash, and of what makes them fresh.
pub(crate) const HASH: usize = 32;

/// Whether all parties but one may be corrupt.
pub(crate) fn fits(party: &Party) -> Result<(), Stop> {
    let (n, t) = (party.n(), party.t());
    if n < 2 || t + 1 != n || n > MOST_PARTIES {
        return Err(Stop::Input("sharing without an honest majority needs all of 2 to 15 parties"));
    }
    Ok(())
}

/// This party's index.
pub(crate) fn index(position: usize) -> Result<ShareIndex, Stop> {
    ShareIndex::at(position).ok_or(Stop::Bug(Bug("a party without an index")))
}

/// Sends the same to all others, and waits for as much of each of them. The own bytes are among what is returned.
pub(crate) async fn broadcast(party: &Party, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Stop> {
    let n = party.n();
    let got = party.exchange(&vec![bytes.clone(); n], &vec![bytes.len(); n])?.await?;
    let mut all: Vec<Vec<u8>> = got.into_iter().map(Into::into).collect();
    if let Some(own) = all.get_mut(party.position()) {
        *own = bytes;
    }
    Ok(all)
}

/// Sends each its message, and waits for one of the same length of each: in protocols of pairs, what one sends the other sends, too.
pub(crate) async fn swap(party: &Party, messages: Messages) -> Result<Messages<Bytes>, Stop> {
    let n = party.n();
    let (mut out, mut expected) = (vec![Vec::new(); n], vec![0; n]);
    for (to, message) in messages {
        if let (Some(out), Some(expected)) = (out.get_mut(to.position()), expected.get_mut(to.position())) {
            *expected = message.len();
            *out = message;
        }
    }
    let got = party.hand_over(out, &expected)?.await?;
    let others = got.into_iter().enumerate().filter(|(position, _)| *position != party.position());
    others.map(|(position, bytes)| Ok((index(position)?, bytes))).collect()
}

/// The phase of a program that ends because its parties did not begin it together. A party that has begun anew and hears what others said to
/// its life before looks like that as well, and nothing hidden has been used when it is found: so it is no proof that somebody cheated.
pub(crate) const BEGAN_APART: &str = "the parties did not begin together";

/// An id that is fresh, as each adds to it, and the same at all. Two rounds.
pub(crate) async fn fresh_id(party: &Party) -> Result<[u8; HASH], Stop> {
    Ok(toss(party, &[]).await?.0)
}

/// What each says beside what it draws, by position.
type Said = Vec<Vec<u8>>;

/// An id to which each adds what it draws, and what all say beside that, of the same length each. Both are the same at all.
async fn toss(party: &Party, says: &[u8]) -> Result<([u8; HASH], Said), Stop> {
    let mut fresh = vec![0; HASH];
    party.draw(|rng| rng.fill_bytes(&mut fresh));
    fresh.extend_from_slice(says);
    let mut transcript = Transcript::new("theta/mpc/pairs/v2");
    let mut said = Said::with_capacity(party.n());
    for bytes in broadcast(party, fresh).await? {
        transcript.append("fresh", &bytes);
        said.push(bytes.get(HASH..).unwrap_or_default().to_vec());
    }
    let id = transcript.finish32();
    if party.agree(&id).await? { Ok((id, said)) } else { Err(Stop::Cheated(BEGAN_APART)) }
}

/// The parties under a fresh id, and the set-up on which they go on: the first by name that all offer. Two rounds.
///
/// Were the id not the same at all, honest parties would blame each other for what comes of that.
pub(crate) async fn session<T>(party: &Party, offered: Vec<Lease<T>>) -> Result<(Parties, Option<Lease<T>>), Stop> {
    let mut names = [[0; HASH]; set_ups::MOST_OF_PARTIES];
    names.iter_mut().zip(&offered).for_each(|(name, lease)| *name = lease.id());
    let (id, said) = toss(party, names.as_flattened()).await?;
    let all_offer = |name: &[u8; HASH]| said.iter().all(|names| names.as_chunks::<HASH>().0.contains(name));
    let lease = offered.into_iter().filter(|lease| all_offer(&lease.id())).min_by_key(Lease::id);
    let me = index(party.position())?;
    let others = party.threshold().indices().filter(|other| *other != me).collect();
    let parties = Parties::new(id, me, others).map_err(|_| Stop::Bug(Bug("a session of one party")))?;
    Ok((parties, lease))
}

/// Goes on only if all have the same digest.
pub(crate) async fn agree(party: &Party, digest: [u8; HASH]) -> Result<(), Stop> {
    if party.agree(&digest).await? { Ok(()) } else { Err(Stop::Cheated("not all received the same")) }
}

/// Blames a party for what it did in a transfer with this one.
pub(crate) fn blame(party: &Party, whom: ShareIndex, misbehaviour: &theta_ot::Misbehaviour) -> Stop {
    use theta_ot::Misbehaviour as Theirs;
    let ours = match misbehaviour {
        Theirs::Element { .. } => Misbehaviour::NotAnElement,
        Theirs::Scalar { .. } => Misbehaviour::NotAScalar,
        Theirs::Length { .. } | Theirs::Trees | Theirs::Correlation => Misbehaviour::FalseTransfer,
    };
    party.blame(whom.position(), ours);
    Stop::Lost
}

/// A mistake of ours in using transfers, or too many of them.
pub(crate) const fn misuse(misuse: &theta_ot::Misuse) -> Stop {
    match misuse {
        theta_ot::Misuse::UsedUp => Stop::Input("the transfers of this set-up are used up"),
        _ => Stop::Bug(Bug("oblivious transfer was used wrongly")),
    }
}

/// Who is blamed for a fault in a run of several, if that can be known.
pub(crate) fn fault(party: &Party) -> impl Fn(theta_ot::mascot::Fault) -> Stop + '_ {
    use theta_ot::mascot::Fault;
    |fault| match fault {
        Fault::Party { party: whom, misbehaviour } => blame(party, whom, &misbehaviour),
        Fault::Commitment(whom) => {
            party.blame(whom.position(), Misbehaviour::FalseOpening);
            Stop::Lost
        }
        Fault::Disagreement(_) => Stop::Cheated("not all received the same"),
        Fault::Macs => Stop::Cheated("the MACs of what was put in fail their check"),
        Fault::Ours(ours) => misuse(&ours),
    }
}

/// All whose openings are false are blamed.
pub(crate) fn false_openings(party: &Party) -> impl Fn(theta_ot::mascot::FalseOpenings) -> Stop + '_ {
    use theta_ot::mascot::FalseOpenings;
    |why| match why {
        FalseOpenings::Of(liars) => {
            liars.iter().for_each(|liar| party.blame(liar.position(), Misbehaviour::FalseTransfer));
            Stop::Lost
        }
        FalseOpenings::Ours(ours) => misuse(&ours),
    }
}

/// Why a step with one party failed.
pub(crate) fn stop(party: &Party, whom: ShareIndex) -> impl Fn(theta_ot::Error) -> Stop {
    move |error| match error {
        theta_ot::Error::Theirs(misbehaviour) => blame(party, whom, &misbehaviour),
        theta_ot::Error::Ours(ours) => misuse(&ours),
    }
}
