//! What holders tell each other of a program that has failed: that they have thrown it away, and then what they know of it.

use theta_groups::Secret;
use theta_mpc::{Heard, MOST_ROUNDS, View};
use theta_names::codec::{Reader, Writer};
use theta_rounds::Malformed;

use super::super::elimination::MOST_LIARS;

/// The name of a run of a program, the same at all its holders.
pub(in crate::ecdsa) type RunName = [u8; 32];

/// The most holders of a program whose views are shown.
const MOST_HOLDERS: usize = 2 * MOST_LIARS + 1;

/// The bytes of a seed.
const SEED: usize = 32;

/// The longest of each.
pub(super) const LONGEST_GAVE_UP: usize = 3 + size_of::<RunName>();
pub(super) const LONGEST_VIEW: usize = 4 + SEED + MOST_ROUNDS * (1 + size_of::<Heard>() * MOST_HOLDERS);

/// Why a holder gives up a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ecdsa) enum Reason {
    /// A check failed at it.
    Failed,
    /// The holder at this place has told it that it has given up.
    Follows(u8),
}

/// The byte of a check that failed.
const FAILED: u8 = u8::MAX;

/// That a holder has thrown away whatever it had of a program, and shall keep nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ecdsa) struct GaveUp {
    pub(in crate::ecdsa) reason: Reason,
    /// Of which run it is.
    pub(in crate::ecdsa) run: RunName,
}

impl GaveUp {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        let reason = match self.reason {
            Reason::Failed => FAILED,
            Reason::Follows(place) => place,
        };
        writer.u8(reason).raw(&self.run)
    }

    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, Malformed> {
        let reason = match fields.u8()? {
            FAILED => Reason::Failed,
            place if usize::from(place) < MOST_HOLDERS => Reason::Follows(place),
            _ => return Err(Malformed("a program has fewer holders")),
        };
        Ok(Self { reason, run: fields.array()? })
    }
}

/// A round is a byte that says of which holders anything was heard, the first in its lowest bit, and the hashes.
pub(super) fn write_view(writer: Writer, view: &View) -> Writer {
    let count = u16::try_from(view.rounds.len()).unwrap_or(u16::MAX);
    let writer = writer.raw(view.seed.expose()).u16(count);
    view.rounds.iter().fold(writer, |writer, round| {
        let bit =
            |(place, heard): (usize, &Option<Heard>)| u8::from(heard.is_some()).checked_shl(u32::try_from(place).ok()?);
        let present = round.iter().enumerate().filter_map(bit).fold(0, |all, bit| all | bit);
        round.iter().flatten().fold(writer.u8(present), |writer, heard| writer.raw(heard))
    })
}

pub(super) fn read_view(fields: &mut Reader<'_>) -> Result<View, Malformed> {
    let seed = Secret::new(fields.array()?);
    let count = usize::from(fields.u16()?);
    if count > MOST_ROUNDS {
        return Err(Malformed("a program has fewer rounds"));
    }
    let mut rounds = Vec::with_capacity(count);
    for _ in 0..count {
        let present = fields.u8()?;
        if present >> MOST_HOLDERS != 0 {
            return Err(Malformed("a program has fewer holders"));
        }
        let heard = |place| if present >> place & 1 == 1 { fields.array().map(Some) } else { Ok(None) };
        rounds.push((0..MOST_HOLDERS).map(heard).collect::<Result<_, _>>()?);
    }
    Ok(View { seed, rounds })
}
