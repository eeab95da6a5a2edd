//! What holders tell each other of a program that has failed: that they have thrown it away, and then what they know of it.

use theta_groups::Secret;
use theta_mpc::{Heard, MOST_ROUNDS, View};
use theta_names::codec::{Reader, Writer};
use theta_rounds::Malformed;

use super::super::elimination::MOST_LIARS;

/// What distinguishes one run of a program at a holder from all others of that holder.
pub(in crate::ecdsa) type Life = [u8; 16];

/// The life of a holder of which nothing was heard.
pub(in crate::ecdsa) const UNHEARD: Life = [0; 16];

/// The most holders of a program whose views are shown.
const MOST_HOLDERS: usize = 2 * MOST_LIARS + 1;

/// The bytes of a seed.
const SEED: usize = 32;

/// The longest of each.
pub(super) const LONGEST_GAVE_UP: usize = 4 + size_of::<Life>() * (1 + MOST_HOLDERS);
pub(super) const LONGEST_VIEW: usize = 4 + SEED + MOST_ROUNDS * (1 + size_of::<Heard>() * MOST_HOLDERS);

/// That a holder has thrown away whatever it had of a program, and shall keep nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ecdsa) struct GaveUp {
    /// Whether a check failed at this holder. If not, it has heard of another one.
    pub(in crate::ecdsa) has_failed: bool,
    /// Its own life.
    pub(in crate::ecdsa) life: Life,
    /// The life of each holder, in their order, that it has heard.
    pub(in crate::ecdsa) heard: Vec<Life>,
}

impl GaveUp {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        let count = u8::try_from(self.heard.len()).unwrap_or(u8::MAX);
        let writer = writer.u8(self.has_failed.into()).raw(&self.life).u8(count);
        self.heard.iter().fold(writer, |writer, life| writer.raw(life))
    }

    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, Malformed> {
        let has_failed = match fields.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed("a check has failed or has not")),
        };
        let life = fields.array()?;
        let count = usize::from(fields.u8()?);
        let heard = (0..count).map(|_| fields.array()).collect::<Result<_, _>>()?;
        Ok(Self { has_failed, life, heard })
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
