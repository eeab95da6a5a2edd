//! A node sends as its own the share that it got from another.

use crate::support::{each_suite, id};
use theta_rounds::simulator::Behaviour;

#[test]
fn the_copyist_is_named_and_not_the_author() {
    each_suite(2, 4, |setting| {
        for seed in 0..3 {
            setting.expect_named(seed, vec![(3, Box::new(Behaviour::CopyOthers))], &["invalid_share"]);
        }
    });
}

/// A copy that comes first does not shut the honest author out.
#[test]
fn the_author_s_own_share_still_counts() {
    each_suite(3, 3, |setting| {
        let report = setting.run(1, vec![(3, Box::new(Behaviour::CopyOthers))]);
        report.check_blame().unwrap();
        // With k = n nothing can come out; but it is the copyist alone whom both others name.
        let named: Vec<_> = report.blames_of(id(3)).map(|(by, _)| by).collect();
        assert_eq!(named, [id(1), id(2)]);
    });
}
