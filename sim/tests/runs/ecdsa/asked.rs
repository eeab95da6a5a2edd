//! What is asked of keys of ECDSA with an honest majority: by whom it is approved, and whether it is a message or its digest.

use theta_schemes::{Delivery, Suite};
use theta_sim::{Asked, Consent, Invariant, Observation, Sabotage, Scenario, run};

use super::presignatures::busy;
use crate::setting::{catches, quiet};

const HONEST_MAJORITY: [Delivery; 2] = [Delivery::All, Delivery::Passive];

/// Three of four nodes are shown two approvals, and one is shown none, another one for each request: presignatures are made by the three, and the fourth
/// gives nothing, whatever it has in stock.
#[test]
fn nodes_that_see_no_approvals_help_nobody() {
    for delivery in HONEST_MAJORITY {
        let mut scenario = quiet(1, Suite::EcdsaP256);
        (scenario.keys[0].delivery, scenario.keys[0].consents) = (delivery, true);
        for (node, asked) in (1..).zip(&mut scenario.requests) {
            asked.consents = [0, 2].map(|approver| Consent { approver, fault: None }).into();
            asked.bare_at = [node].into();
        }
        let outcome = run(&scenario, false);
        assert_eq!((outcome.violation, outcome.results), (None, 3 * scenario.requests.len()), "{delivery:?}");
        catches(&scenario, Sabotage::NoConsents, Invariant::Permitted);
        // One approver's word twice is no second one's.
        for asked in &mut scenario.requests {
            asked.consents = [1, 1].map(|approver| Consent { approver, fault: None }).into();
        }
        let outcome = run(&scenario, false);
        assert_eq!((outcome.violation, outcome.results), (None, 0), "{delivery:?}");
    }
}

/// Each text is asked for twice at the same moment: as a message, and as a digest that its caller has chosen. Those are two requests, and no presignature
/// serves both.
#[test]
fn digests_are_signed_beside_their_messages() {
    for delivery in [Delivery::All, Delivery::DishonestMajority] {
        let mut scenario = busy(1, false);
        scenario.keys[0].delivery = delivery;
        scenario.requests.truncate(4);
        let hashed = |asked: &Asked| Asked { hashed: true, ..asked.clone() };
        let others: Vec<Asked> = scenario.requests.iter().map(hashed).collect();
        scenario.requests.extend(others);
        let outcome = run(&scenario, false);
        assert_eq!((outcome.violation, outcome.results), (None, 4 * scenario.requests.len()), "{delivery:?}");
        assert_eq!(outcome.observations.count(Observation::Presigned) > 0, delivery == Delivery::All);
    }
}

/// Random scenarios have such keys with approvals, and with nodes whose policies refuse them; and digests for keys of every delivery.
#[test]
fn seeds_draw_approvals_and_digests() {
    let (mut approved, mut refused, mut hashed) = (0, 0, [0; 2]);
    for seed in 0..2_000 {
        let scenario = Scenario::of(seed);
        let is_ecdsa = |key: usize| scenario.keys[key].suite.scheme() == "ECDSA";
        for key in
            scenario.keys.iter().filter(|key| key.suite.scheme() == "ECDSA" && HONEST_MAJORITY.contains(&key.delivery))
        {
            approved += usize::from(key.consents);
            refused += usize::from(!key.refused_by.is_empty());
        }
        assert!(scenario.requests.iter().all(|asked| !asked.hashed || is_ecdsa(asked.key)), "seed {seed}");
        for asked in scenario.requests.iter().filter(|asked| is_ecdsa(asked.key)) {
            hashed[usize::from(asked.hashed)] += 1;
        }
    }
    assert!(approved >= 10 && refused >= 10, "{approved} with approvals, {refused} that some refuse");
    assert!(hashed.iter().all(|count| *count >= 100), "{hashed:?}");
}
