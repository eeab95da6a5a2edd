//! As many liars at once as the threshold allows, each in its own way.

use crate::one_round::support::{Delta, each_suite, id, shifted, substitute, tamper};
use theta_rounds::simulator::{Adversary, Behaviour};

#[test]
fn t_liars_are_all_named_and_the_result_comes() {
    // 4 of 7: t = 3 and n - t = k, so every honest share is needed.
    each_suite(4, 7, |setting| {
        let suite = setting.suite;
        let shifty = tamper(move |_, payload| shifted(suite, &payload, &Delta::plus(9)));
        let replay = substitute(setting.share_of_other_instance(6));
        let corrupted: Vec<(u16, Box<dyn Adversary>)> = vec![(1, shifty), (4, Box::new(Behaviour::Empty)), (6, replay)];
        setting.expect_named(1, corrupted, &["invalid_share", "malformed_share"]);
    });
}

#[test]
fn silence_and_lies_together() {
    each_suite(3, 6, |setting| {
        let suite = setting.suite;
        let shifty = tamper(move |_, payload| shifted(suite, &payload, &Delta::minus(2)));
        let corrupted: Vec<(u16, Box<dyn Adversary>)> =
            vec![(2, Box::new(Behaviour::Silent)), (3, shifty), (5, Box::new(Behaviour::Truncate))];
        let report = setting.run(2, corrupted);
        setting.expect_result(&report);
        assert_eq!(report.blames_of(id(2)).count(), 0);
        for liar in [3, 5] {
            assert_eq!(report.blames_of(id(liar)).count(), 3);
        }
    });
}
