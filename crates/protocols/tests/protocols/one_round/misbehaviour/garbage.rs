//! A node sends bytes that mean nothing.

use crate::one_round::support::each_suite;
use theta_rounds::simulator::Behaviour;

/// Random bytes of the right length may decode by chance; they are then a false share.
const OFFENCES: [&str; 3] = ["malformed_share", "invalid_share", "equivocation"];

#[test]
fn random_bytes_are_named() {
    each_suite(2, 4, |setting| {
        for seed in 0..10 {
            setting.expect_named(seed, vec![(1, Box::new(Behaviour::Garbage))], &OFFENCES);
        }
    });
}

#[test]
fn a_message_in_no_slot_is_named() {
    each_suite(2, 3, |setting| {
        setting.expect_named(1, vec![(2, Box::new(Behaviour::UnknownSlot))], &["unknown_slot"]);
    });
}
