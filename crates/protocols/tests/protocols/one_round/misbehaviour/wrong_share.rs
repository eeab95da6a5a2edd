//! A node sends a well-formed share that is not the right one.

use crate::one_round::support::{Delta, Setting, each_suite, id, shifted, tamper};
use theta_rounds::{Abort, simulator::Adversary};

fn liar(setting: &Setting, by: u64) -> Box<dyn Adversary> {
    let suite = setting.suite;
    tamper(move |_, payload| shifted(suite, &payload, &Delta::plus(by)))
}

#[test]
fn it_is_named_and_the_result_comes_all_the_same() {
    each_suite(2, 4, |setting| setting.expect_named(1, vec![(2, liar(setting, 1))], &["invalid_share"]));
}

#[test]
fn the_text_says_what_happened() {
    each_suite(2, 3, |setting| {
        let report = setting.run(3, vec![(3, liar(setting, 1))]);
        let blames: Vec<_> = report.blames_of(id(3)).map(|(_, blame)| blame.to_string()).collect();
        assert_eq!(blames, ["party 3: share fails verification", "party 3: share fails verification"]);
    });
}

#[test]
fn one_too_many_is_an_end_with_a_reason() {
    each_suite(3, 4, |setting| {
        // Different lies: equal ones cancel under some interpolations, and the result is then right after all.
        let report = setting.run(4, vec![(1, liar(setting, 1)), (2, liar(setting, 5))]);
        report.check_blame().unwrap();
        for (_, party) in report.honest() {
            let expected = Abort::TooFewHonest { remaining: 2, needed: 3 };
            assert_eq!(party.result.as_ref().unwrap().as_ref().unwrap_err(), &expected);
            assert_eq!(party.blames.len(), 2);
        }
    });
}
