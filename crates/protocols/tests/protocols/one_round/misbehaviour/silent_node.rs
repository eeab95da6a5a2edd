//! A silent node commits no offence, and nobody waits for it.

use crate::one_round::support::{each_suite, id};
use theta_rounds::simulator::Behaviour;

#[test]
fn the_others_finish_and_accuse_nobody() {
    each_suite(2, 4, |setting| {
        let report = setting.run(1, vec![(3, Box::new(Behaviour::Silent))]);
        setting.expect_result(&report);
        assert_eq!(report.blames_of(id(3)).count(), 0);
        for (_, party) in report.honest() {
            let contributors = &party.result.as_ref().unwrap().as_ref().unwrap().contributors;
            assert_eq!(contributors.len(), 2);
            assert!(!contributors.contains(&id(3).share()));
        }
    });
}

#[test]
fn below_k_nothing_comes_out_and_nobody_is_to_blame() {
    each_suite(3, 4, |setting| {
        let silent: [u16; 2] = [1, 4];
        let report = setting.run(2, silent.map(|number| (number, Box::new(Behaviour::Silent) as Box<_>)).into());
        report.check_blame().unwrap();
        assert!(report.honest().all(|(_, party)| party.result.is_none() && party.blames.is_empty()));
    });
}
