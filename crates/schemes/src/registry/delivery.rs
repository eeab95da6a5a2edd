//! Which suites have which delivery.

use theta_names::Delivery;

use crate::Suite;

impl Suite {
    /// Whether keys of this suite can have this delivery: quorum mode takes combined values that one holder tells the others, which FROST and
    /// ECDSA do not have; a dishonest majority and passive security are for whoever multiplies shared values.
    #[must_use]
    pub fn supports(self, delivery: Delivery) -> bool {
        match delivery {
            Delivery::All => true,
            Delivery::Quorum => self.ops().has_combined_value(),
            Delivery::DishonestMajority | Delivery::Passive | Delivery::PassiveDishonestMajority => {
                self.ops().takes_honest_majority()
            }
        }
    }

    /// Refuses a delivery that keys of this suite cannot have.
    ///
    /// # Errors
    /// [`UnsupportedDelivery`].
    pub fn check_delivery(self, delivery: Delivery) -> Result<(), UnsupportedDelivery> {
        if self.supports(delivery) { Ok(()) } else { Err(UnsupportedDelivery { suite: self, delivery }) }
    }
}

/// Keys of the suite cannot have this delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("keys of suite {suite} {}", without(*.delivery))]
pub struct UnsupportedDelivery {
    /// The suite.
    pub suite: Suite,
    /// What was asked for.
    pub delivery: Delivery,
}

/// What keys do not have, why, and what to do.
fn without(delivery: Delivery) -> String {
    match delivery {
        Delivery::All | Delivery::Quorum => {
            "have no quorum mode: as few holders as it takes make each signature whatever the delivery; leave out \
             --delivery quorum, or take an sg02, bz03, bls04, sh00 or cks05 suite"
                .to_owned()
        }
        Delivery::DishonestMajority => format!(
            "need no choice of a majority: their holders multiply no shared values, and fewer than k of them are safe whoever they are; leave out \
             --majority, which is for suites {}",
            with(delivery)
        ),
        Delivery::Passive | Delivery::PassiveDishonestMajority => format!(
            "have no passive security: their holders multiply no shared values, and a holder that lies gains nothing whatever they do; leave out \
             --security passive, which is for suites {}",
            with(delivery)
        ),
    }
}

/// The suites whose keys can have it.
fn with(delivery: Delivery) -> String {
    let suites = Suite::ALL.into_iter().filter(|suite| suite.supports(delivery));
    suites.map(Suite::name).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorum_mode_is_for_schemes_of_one_round() {
        for suite in Suite::ALL {
            let several_rounds = ["FROST", "ECDSA"].contains(&suite.scheme());
            assert_eq!(suite.supports(Delivery::Quorum), !several_rounds, "{suite}");
            assert!(suite.supports(Delivery::All), "{suite}");
        }
        for delivery in [Delivery::DishonestMajority, Delivery::Passive, Delivery::PassiveDishonestMajority] {
            let supporting = Suite::ALL.into_iter().filter(|suite| suite.supports(delivery));
            assert!(supporting.eq(Suite::ALL.into_iter().filter(|suite| suite.scheme() == "ECDSA")), "{delivery}");
            let refused = Suite::FrostP256.check_delivery(delivery).unwrap_err().to_string();
            assert!(refused.ends_with(", which is for suites ecdsa-p256 and ecdsa-secp256k1"), "{delivery}: {refused}");
        }
    }
}
