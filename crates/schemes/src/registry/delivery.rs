//! Which suites have which delivery.

use theta_names::Delivery;

use crate::Suite;

impl Suite {
    /// Whether keys of this suite can have this delivery: quorum mode takes combined values that prove themselves, which the
    /// coins by Diffie-Hellman, FROST and ECDSA do not have; a dishonest majority and passive security are for whoever multiplies shared values.
    #[must_use]
    pub fn supports(self, delivery: Delivery) -> bool {
        match delivery {
            Delivery::All => true,
            Delivery::Quorum => self.ops().is_checkable(),
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
            "have no quorum mode: their parties all make shares, since no combined value proves itself; leave out \
             --delivery quorum, or take an sg02, bz03, bls04 or sh00 suite, or a coin made from bls04 or sh00"
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
    fn quorum_mode_is_for_results_that_prove_themselves() {
        let without: Vec<&str> = Suite::ALL
            .into_iter()
            .filter(|suite| !suite.supports(Delivery::Quorum))
            .map(Suite::name)
            .filter(|name| !name.starts_with("frost-") && !name.starts_with("ecdsa-"))
            .collect();
        let curves = ["bls12381", "bn254", "ed25519", "ed448", "p256", "ristretto255", "secp256k1"];
        let mut expected: Vec<String> = curves.iter().map(|curve| format!("cks05-{curve}")).collect();
        expected.sort_unstable();
        let mut without: Vec<String> = without.into_iter().map(str::to_owned).collect();
        without.sort_unstable();
        assert_eq!(without, expected);
        assert!(Suite::ALL.into_iter().all(|suite| suite.supports(Delivery::All)));
        assert!(!Suite::FrostEd25519.supports(Delivery::Quorum) && !Suite::EcdsaP256.supports(Delivery::Quorum));
        assert!(Suite::Cks05Sh00.supports(Delivery::Quorum));
        for delivery in [Delivery::DishonestMajority, Delivery::Passive, Delivery::PassiveDishonestMajority] {
            let supporting = Suite::ALL.into_iter().filter(|suite| suite.supports(delivery));
            assert!(supporting.eq(Suite::ALL.into_iter().filter(|suite| suite.scheme() == "ECDSA")), "{delivery}");
            let refused = Suite::FrostP256.check_delivery(delivery).unwrap_err().to_string();
            assert!(refused.ends_with(", which is for suites ecdsa-p256 and ecdsa-secp256k1"), "{delivery}: {refused}");
        }
    }
}
