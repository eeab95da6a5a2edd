//! Two nodes whose lies cancel out, in the sum of all shares or in the result.

use crate::one_round::support::{Delta, Setting, each_suite, shifted, tamper};
use theta_rounds::simulator::Adversary;

fn pair(setting: &Setting, deltas: [fn(u16) -> Delta; 2]) -> Vec<(u16, Box<dyn Adversary>)> {
    let suite = setting.suite;
    let [first, second] = deltas;
    let one = tamper(move |to, payload| shifted(suite, &payload, &first(to.get())));
    let two = tamper(move |to, payload| shifted(suite, &payload, &second(to.get())));
    vec![(2, one), (4, two)]
}

/// A batch check without random weights would accept these.
#[test]
fn errors_that_cancel_in_the_sum_are_both_named() {
    each_suite(3, 6, |setting| {
        let corrupted = pair(setting, [|_| Delta::plus(5), |_| Delta::minus(5)]);
        setting.expect_named(1, corrupted, &["invalid_share"]);
    });
}

/// Each recipient gets errors that cancel under its own interpolation. Where the result is checked, it is right, and
/// nobody is named; where shares are checked, both are named.
#[test]
fn errors_that_cancel_in_the_result_do_no_harm() {
    fn weighted(to: u16, of: u16, negative: bool) -> Delta {
        // One error times the other's coefficient, so that both products are the same.
        Delta { value: 7, negative, lagrange: Some((vec![to, 2, 4], of)) }
    }
    each_suite(3, 6, |setting| {
        let corrupted = pair(setting, [|to| weighted(to, 4, false), |to| weighted(to, 2, true)]);
        let report = setting.run(2, corrupted);
        setting.expect_result(&report);
        let blames = report.honest().map(|(_, party)| party.blames.len()).sum::<usize>();
        match setting.suite.purpose() {
            theta_schemes::Purpose::Coin => assert_eq!(blames, 2 * 4, "both are named by all four"),
            _ => assert_eq!(blames, 0, "the result is right"),
        }
    });
}
