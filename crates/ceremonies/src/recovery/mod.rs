//! Recovery of one holder's lost share (Herzberg, Jarecki, Krawczyk, Yung, *Proactive secret sharing*, CRYPTO 1995,
//! section 4.2). Nobody else learns the share, and its owner learns nothing else.
//!
//! Helpers deal masks, random polynomials that vanish at the lost index. The owner chooses a set of helpers whose masks are right
//! for all of them and asks these for their shares plus the masks' values; at the lost index the sum is the lost share.
//!
//! The owner may lie, and send each helper another list. So a helper accepts one list in each attempt, with its
//! signature, and answers when all that it lists have accepted the very same: `spec/ceremonies.md` proves that nothing
//! else is learnt then.

mod acceptance;
mod agreeing;
mod answer;
mod logic;

pub(super) use acceptance::read_acceptances;
pub(super) use answer::{Answer, is_false_answer, read_masks};
pub(super) use logic::RecoveryLogic;
