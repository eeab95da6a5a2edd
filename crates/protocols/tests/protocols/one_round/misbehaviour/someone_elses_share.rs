//! A node sends another node's share as its own.

use crate::one_round::support::{Copyist, each_suite, id};

#[test]
fn the_copyist_is_named_and_not_the_author() {
    each_suite(2, 4, |setting| {
        for seed in 0..3 {
            let report = setting.run(seed, vec![(3, Box::new(Copyist::default()))]);
            setting.expect_result(&report);
            let blames: Vec<_> = report.blames_of(id(3)).map(|(_, blame)| blame.offence.name()).collect();
            // A party that has the author's honest proof before the copy needs no other share.
            let unheard = usize::from(setting.suite.scheme() == "SG02");
            assert!((3 - unheard..=3).contains(&blames.len()), "{} of 3 name the copyist", blames.len());
            assert!(blames.iter().all(|name| *name == "invalid_share"));
        }
    });
}

/// A copy that comes first does not exclude the honest author.
#[test]
fn the_author_s_own_share_still_counts() {
    each_suite(3, 3, |setting| {
        let report = setting.run(1, vec![(3, Box::new(Copyist::default()))]);
        report.check_blame().unwrap();
        // With k = n there can be no result; but both others name the copyist alone.
        let named: Vec<_> = report.blames_of(id(3)).map(|(by, _)| by).collect();
        assert_eq!(named, [id(1), id(2)]);
    });
}
