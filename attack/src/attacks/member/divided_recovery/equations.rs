//! Linear algebra on the answers of helpers, for keys with k = 2, whose polynomial is a line.

use std::collections::BTreeMap;

use theta_groups::{RistrettoScalar, Scalar};

/// The unknowns of an equation, in the order of their elimination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unknown {
    /// The mask of a helper in an attempt: m in (X - r) m.
    Mask(u32, u16),
    /// The slope of the line.
    Rise,
    /// The value of the line at 0.
    Key,
    /// The constant term.
    Known,
}

type Form = BTreeMap<Unknown, RistrettoScalar>;

/// Equations in echelon form, by their leading unknowns. Each is a linear form that equals zero.
pub(super) struct Equations {
    owner: RistrettoScalar,
    rows: BTreeMap<Unknown, Form>,
}

fn number(of: u16) -> RistrettoScalar {
    RistrettoScalar::from_u64(of.into())
}

fn add(to: &mut Form, factor: RistrettoScalar, other: &Form) {
    for (unknown, value) in other {
        let sum = to.get(unknown).copied().unwrap_or(RistrettoScalar::ZERO) + factor * *value;
        to.insert(*unknown, sum);
    }
    to.retain(|_, value| *value != RistrettoScalar::ZERO);
}

impl Equations {
    /// No equations; `owner` is the index of the lost share.
    pub(super) fn new(owner: u16) -> Self {
        Self { owner: number(owner), rows: BTreeMap::new() }
    }

    /// Adds a helper's answer: its share plus the masks of the helpers in the list, all at its index.
    pub(super) fn learn(&mut self, helper: u16, attempt: u32, list: &[u16], answer: RistrettoScalar) {
        let at = number(helper);
        let mut form =
            Form::from([(Unknown::Key, RistrettoScalar::ONE), (Unknown::Rise, at), (Unknown::Known, -answer)]);
        form.extend(list.iter().map(|other| (Unknown::Mask(attempt, *other), at - self.owner)));
        while let Some((first, value)) = form.first_key_value().map(|(first, value)| (*first, *value)) {
            match self.rows.get(&first) {
                Some(row) => add(&mut form, -value, row),
                None => {
                    let inverse = value.invert();
                    form.values_mut().for_each(|value| *value = *value * inverse);
                    self.rows.insert(first, form);
                    return;
                }
            }
        }
    }

    /// The key, if the equations determine it.
    pub(super) fn key(&self) -> Option<RistrettoScalar> {
        let row = self.rows.get(&Unknown::Key)?;
        Some(-row.get(&Unknown::Known).copied().unwrap_or(RistrettoScalar::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists whose masks cancel determine the key if all of them are answered, and do not without the third.
    #[test]
    fn masks_that_cancel_give_the_key() {
        let (key, rise) = (number(77), number(13));
        let mask = |helper| number(1_000 + 7 * helper * helper);
        let asked: [(u16, &[u16]); 4] = [(1, &[1, 3]), (2, &[2, 4]), (4, &[2, 4]), (3, &[1, 2, 3, 4])];
        let mut equations = Equations::new(5);
        for (helper, list) in asked {
            assert_eq!(equations.key(), None);
            let masks = list.iter().fold(RistrettoScalar::ZERO, |sum, other| sum + mask(*other));
            let at = number(helper);
            equations.learn(helper, 0, list, key + rise * at + (at - number(5)) * masks);
        }
        assert_eq!(equations.key(), Some(key));
    }
}
