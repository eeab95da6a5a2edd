//! Finding one holder's lost share again (Herzberg, Jarecki, Krawczyk, Yung, *Proactive secret sharing*, CRYPTO 1995,
//! section 4.2), without anybody else learning it and without its owner learning anything else.
//!
//! Helpers deal masks, random polynomials that vanish at the lost index. The owner chooses a set of helpers whose masks are right
//! for all of them and asks these for their shares plus the masks' values; at the lost index the sum is the lost share.
//!
//! The owner may lie, and tell each helper another list. So a helper accepts one list an attempt, with its signature, and answers
//! when all who are listed have accepted the very same: `spec/ceremonies.md` proves that nothing else is learnt then.

mod acceptance;
mod answer;
mod logic;

pub(super) use acceptance::read_acceptances;
pub(super) use answer::{Answer, is_false_answer, read_masks};
pub(super) use logic::RecoveryLogic;
