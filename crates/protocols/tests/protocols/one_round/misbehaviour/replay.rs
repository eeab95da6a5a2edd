//! A node sends its share of another instance.

use crate::one_round::support::{each_suite, id, substitute};
use theta_rounds::simulator::Behaviour;

#[test]
fn a_share_of_another_request_is_named() {
    each_suite(2, 4, |setting| {
        let replay = substitute(setting.share_of_other_instance(2));
        setting.expect_named(1, vec![(2, replay)], &["invalid_share"]);
    });
}

#[test]
fn another_party_s_share_of_another_request_is_named() {
    each_suite(2, 4, |setting| {
        let replay = substitute(setting.share_of_other_instance(1));
        setting.expect_named(2, vec![(4, replay)], &["invalid_share"]);
    });
}

/// The network may repeat messages of honest parties as often as it likes.
#[test]
fn repeating_oneself_is_no_offence() {
    each_suite(2, 4, |setting| {
        let report = setting.run(3, vec![(2, Box::new(Behaviour::Flood))]);
        setting.expect_result(&report);
        assert_eq!(report.blames_of(id(2)).count(), 0);
    });
}
