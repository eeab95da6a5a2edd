//! Products of secrets of two parties on oblivious transfer: Gilboa's, and those with a fixed factor of MASCOT (COPEe).

use rand_core::CryptoRng;
use theta::exit::Failure;
use theta_groups::{P256Scalar, Scalar, Secret};
use theta_ot::{
    Choices,
    base::{ReceivedSeeds, SentSeeds},
    copee,
    extension::{ReceivedTransfers, Receiver, Sender, SentTransfers},
    gilboa,
};

use super::{
    Target, scalar,
    transfers::{Kept, session, set_up},
};

/// Bits of a digit of COPEe: what MASCOT takes.
const DIGIT: u8 = 3;
/// What a product takes.
const TRANSFERS: usize = gilboa::TRANSFERS;

pub(super) fn all() -> Vec<Target> {
    vec![
        Target::new("ot-gilboa-receive", "factor 1, or random", |trial| {
            let ends = Ends::new(set_up(trial.rng())?);
            trial.fallible_steps(
                |class, rng| {
                    let factor = scalar::<P256Scalar>(class, rng);
                    let (received, sent) = ends.transfer(Choices::of_scalars(&[factor]), rng)?;
                    let sent = gilboa::send(sent, &[P256Scalar::random(rng)]).map_err(Failure::internal)?;
                    Ok((received, sent.0))
                },
                |(received, corrections)| gilboa::receive::<P256Scalar>(received, &corrections),
            )
        }),
        Target::new("ot-gilboa-send", "factor 1, or random", |trial| {
            let ends = Ends::new(set_up(trial.rng())?);
            trial.fallible_steps(
                |class, rng| {
                    let (_, sent) = ends.transfer(Choices::random(TRANSFERS, rng), rng)?;
                    Ok((sent, [scalar::<P256Scalar>(class, rng)]))
                },
                |(sent, factors)| gilboa::send(sent, &factors),
            )
        }),
        Target::new("ot-copee-receive", "MAC key 1, or random", |trial| {
            let (ends, session) = (Ends::new(set_up(trial.rng())?), session()?);
            trial.fallible_steps(
                |class, rng| {
                    let delta = Secret::new(scalar::<P256Scalar>(class, rng));
                    let (received, sent) = ends.seeds(&[*delta.expose()], rng)?;
                    let (input, opening) = copee::Sender::new(&session, DIGIT, &sent).map_err(Failure::internal)?;
                    let extended = input.extend(&[P256Scalar::random(rng)]).map_err(Failure::internal)?;
                    Ok((delta, received, opening, extended.1))
                },
                |(delta, received, opening, corrections)| {
                    let key = copee::Receiver::new::<P256Scalar>(&session, DIGIT, &delta, received, &opening)?;
                    key.extend::<P256Scalar>(1, &corrections)
                },
            )
        }),
        Target::new("ot-copee-send", "factor 1, or random", |trial| {
            let (ends, session) = (Ends::new(set_up(trial.rng())?), session()?);
            trial.fallible_steps(
                |class, rng| {
                    let (_, sent) = ends.seeds(&[P256Scalar::random(rng)], rng)?;
                    let (input, _) = copee::Sender::new(&session, DIGIT, &sent).map_err(Failure::internal)?;
                    Ok((input, [scalar::<P256Scalar>(class, rng)]))
                },
                |(input, factors)| input.extend(&factors),
            )
        }),
    ]
}

/// Both ends of an extension, which make all transfers of a trial.
struct Ends {
    sender: Kept<Sender>,
    receiver: Kept<Receiver>,
}

impl Ends {
    fn new((sender, receiver): (Sender, Receiver)) -> Self {
        Self { sender: Kept::new(sender), receiver: Kept::new(receiver) }
    }

    /// Transfers with these choices.
    fn transfer(
        &self,
        choices: Choices,
        rng: &mut impl CryptoRng,
    ) -> Result<(ReceivedTransfers, SentTransfers), Failure> {
        let transfers = choices.len();
        let (message, received) = self.receiver.with(|receiver| {
            let extended = receiver.extend(choices, rng);
            extended.map(|(receiver, message, received)| (receiver, (message, received)))
        })?;
        Ok((received, self.sender.with(|sender| sender.extend(transfers, &message))?))
    }

    /// The seeds of transfers with the bits of a scalar.
    fn seeds(&self, scalars: &[P256Scalar], rng: &mut impl CryptoRng) -> Result<(ReceivedSeeds, SentSeeds), Failure> {
        let (received, sent) = self.transfer(Choices::of_scalars(scalars), rng)?;
        Ok((received.into_seeds(), sent.into_seeds()))
    }
}
