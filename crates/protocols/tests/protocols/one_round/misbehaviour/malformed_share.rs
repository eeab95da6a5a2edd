//! A node sends something that is nearly a share: too short, too long, not canonical, the identity.

use crate::one_round::support::{each_suite, tamper};
use bytes::Bytes;
use theta_rounds::simulator::Behaviour;

#[test]
fn truncated_and_empty_shares_are_named() {
    each_suite(2, 4, |setting| {
        setting.expect_named(1, vec![(4, Box::new(Behaviour::Truncate))], &["malformed_share"]);
        setting.expect_named(2, vec![(4, Box::new(Behaviour::Empty))], &["malformed_share"]);
    });
}

#[test]
fn a_byte_too_many_is_named() {
    each_suite(2, 4, |setting| {
        let longer = tamper(|_, payload| [&payload[..], &[0]].concat().into());
        setting.expect_named(3, vec![(1, longer)], &["malformed_share"]);
    });
}

#[test]
fn unreduced_and_identity_encodings_are_named() {
    each_suite(2, 4, |setting| {
        let ones = tamper(|_, payload| Bytes::from(vec![0xff; payload.len()]));
        setting.expect_named(4, vec![(2, ones)], &["malformed_share"]);
        // All zeros: the identity of ristretto255, and no compressed point of BLS12-381.
        let zeros = tamper(|_, payload| Bytes::from(vec![0; payload.len()]));
        setting.expect_named(5, vec![(2, zeros)], &["malformed_share"]);
    });
}
