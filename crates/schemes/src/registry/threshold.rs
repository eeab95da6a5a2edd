//! Which thresholds the keys of a suite can have.

use theta_names::Delivery;
use theta_sharing::Threshold;

use crate::Suite;

/// The most holders among whom shared values are multiplied: what a program of `theta-mpc` takes.
const MOST_MULTIPLYING: u32 = 15;
/// The k of so many.
const MOST_K: u16 = 8;

impl Suite {
    /// Whether the holders of its keys multiply shared values, for which most of them must be honest.
    #[must_use]
    pub fn takes_honest_majority(self) -> bool {
        self.ops().takes_honest_majority()
    }

    /// The delivery of a key for which nobody has chosen a majority: the one that was asked for or, where k and n leave no honest majority, the
    /// one that needs none.
    #[must_use]
    pub fn implied_delivery(self, asked: Delivery, threshold: Threshold) -> Delivery {
        let other = if asked.is_passive() { Delivery::PassiveDishonestMajority } else { Delivery::DishonestMajority };
        let fits = self.check_threshold(threshold, other).is_ok();
        // Where k is only too large for the other protocol, that is refused, with what would do.
        let leaves_none = u32::from(threshold.n()) + 1 < 2 * u32::from(threshold.k());
        if self.takes_honest_majority() && leaves_none && fits { other } else { asked }
    }

    /// Refuses a threshold that keys of this suite cannot have: wherever a key is made, and wherever its shares are moved. Keys whose
    /// holders multiply shared values take n >= 2 k - 1, as the product of two sharings of degree k - 1 has degree 2 k - 2; k >= 2,
    /// as one holder alone would be the key; and k <= 8, as 15 holders multiply at most. With a dishonest majority
    /// ([`Delivery::has_dishonest_majority`]) exactly k holders multiply, so that k from 2 to 15 will do, and any n.
    ///
    /// # Errors
    /// [`UnfitThreshold`].
    pub fn check_threshold(self, threshold: Threshold, delivery: Delivery) -> Result<(), UnfitThreshold> {
        let (k, n) = (u32::from(threshold.k()), u32::from(threshold.n()));
        let fits = if delivery.has_dishonest_majority() {
            (2..=MOST_MULTIPLYING).contains(&k)
        } else {
            k >= 2 && n >= 2 * k - 1 && 2 * k - 1 <= MOST_MULTIPLYING
        };
        if !self.ops().takes_honest_majority() || fits {
            Ok(())
        } else {
            Err(UnfitThreshold { suite: self, threshold, delivery })
        }
    }
}

/// Too few holders for k, or too small or large a k, for a scheme whose holders multiply shared values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("keys of suite {suite} cannot be {threshold}: {}", reason(*.threshold, *.delivery))]
pub struct UnfitThreshold {
    /// The suite.
    pub suite: Suite,
    /// What was asked for.
    pub threshold: Threshold,
    /// How many of the holders may cheat.
    pub delivery: Delivery,
}

/// Why not, and what would do.
fn reason(threshold: Threshold, delivery: Delivery) -> String {
    match delivery {
        Delivery::All | Delivery::Quorum | Delivery::Passive => format!(
            "it needs k from 2 to 8 and n >= 2 k - 1 holders, so that most of them are honest: 2 of 3, 3 of 5, 4 of 7, or with --majority \
             dishonest any k from 2 to {MOST_MULTIPLYING}; {}",
            remedy(threshold)
        ),
        Delivery::DishonestMajority | Delivery::PassiveDishonestMajority => format!(
            "with a dishonest majority k holders compute each signature together, which takes 2 of them and {MOST_MULTIPLYING} at most; {}",
            match threshold.n() {
                1 => "take 2 holders and k = 2".to_owned(),
                2 => "with 2 holders take k = 2".to_owned(),
                n => format!("with {n} holders take k from 2 to {}", u32::from(n).min(MOST_MULTIPLYING)),
            }
        ),
    }
}

/// What would do.
fn remedy(threshold: Threshold) -> String {
    let (k, n) = (threshold.k(), threshold.n());
    let (most, enough) = (n.div_ceil(2).min(MOST_K), u32::from(k.min(MOST_K)) * 2 - 1);
    let fitting = if most == 2 { "k = 2".to_owned() } else { format!("k from 2 to {most}") };
    match (k, most) {
        (1, 0 | 1) => "take 3 holders and k = 2".to_owned(),
        (_, 0 | 1) => format!("take {enough} holders for k = {k}"),
        (1, _) => format!("with {n} holders take {fitting}"),
        (k, _) if k > MOST_K => format!("with {n} holders take {fitting}"),
        _ => format!("with {n} holders take {fitting}, or take {enough} holders for k = {k}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_holders_must_be_honest_where_shares_are_multiplied() {
        for n in 1..=12 {
            for k in 1..=n {
                let threshold = Threshold::new(k, n).unwrap();
                for suite in Suite::ALL {
                    let allowed = suite.scheme() != "ECDSA" || (k >= 2 && k < n && k + k <= n + 1);
                    for delivery in [Delivery::All, Delivery::Passive] {
                        let checked = suite.check_threshold(threshold, delivery);
                        assert_eq!(checked.is_ok(), allowed, "{suite}, {threshold}, {delivery}");
                    }
                }
            }
        }
        let check = |k, n, delivery| Suite::EcdsaP256.check_threshold(Threshold::new(k, n).unwrap(), delivery);
        assert!(check(u16::MAX, u16::MAX, Delivery::All).is_err());
        for (k, n, fits) in [(8, 15, true), (8, 100, true), (9, 17, false), (9, 100, false), (8, 14, false)] {
            assert_eq!(check(k, n, Delivery::All).is_ok(), fits, "{k} of {n}");
        }
    }

    #[test]
    fn any_two_holders_will_do_where_most_may_be_dishonest() {
        for (k, n, fits) in
            [(1, 2, false), (2, 2, true), (2, 100, true), (15, 15, true), (15, 90, true), (16, 16, false)]
        {
            for delivery in [Delivery::DishonestMajority, Delivery::PassiveDishonestMajority] {
                let checked = Suite::EcdsaP256.check_threshold(Threshold::new(k, n).unwrap(), delivery);
                assert_eq!(checked.is_ok(), fits, "{k} of {n}, {delivery}");
            }
        }
        for ((k, n), remedy) in [
            ((1, 1), "take 2 holders and k = 2"),
            ((1, 2), "with 2 holders take k = 2"),
            ((1, 5), "take k from 2 to 5"),
        ] {
            let refused = Suite::EcdsaP256.check_threshold(Threshold::new(k, n).unwrap(), Delivery::DishonestMajority);
            assert!(refused.unwrap_err().to_string().ends_with(remedy));
        }
    }

    #[test]
    fn the_refusal_says_what_would_do() {
        let refused = |k, n| {
            let threshold = Threshold::new(k, n).unwrap();
            Suite::EcdsaP256.check_threshold(threshold, Delivery::All).unwrap_err().to_string()
        };
        for ((k, n), remedy) in [
            ((1, 1), "take 3 holders and k = 2"),
            ((2, 2), "take 3 holders for k = 2"),
            ((9, 20), "with 20 holders take k from 2 to 8"),
            ((1, 3), "with 3 holders take k = 2"),
            ((3, 4), "with 4 holders take k = 2, or take 5 holders for k = 3"),
            ((4, 5), "with 5 holders take k from 2 to 3, or take 7 holders for k = 4"),
        ] {
            assert!(refused(k, n).ends_with(remedy), "{}", refused(k, n));
            assert!(refused(k, n).starts_with(&format!("keys of suite ecdsa-p256 cannot be {k} of {n}: ")));
        }
    }
}
