//! Shares that arrive before the request.

use crate::one_round::support::{Delta, each_suite, id, own_proof, own_share, result_of, shifted};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_rounds::{Effect, Input};

#[test]
fn they_wait_and_the_result_is_there_at_once() {
    each_suite(3, 4, |setting| {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut late = setting.machine(1);
        let from = |number: u16| {
            let share = own_share(&mut setting.machine(number));
            Input::Message { from: id(number), slot: share.slot, channel: share.channel, payload: share.payload }
        };
        assert!(late.handle(from(2), &mut rng).is_empty());
        assert!(late.handle(from(4), &mut rng).is_empty());
        let effects = late.handle(Input::Start, &mut rng);
        let [Effect::Send { .. }, Effect::Finished(Ok(outcome))] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(result_of(outcome), setting.result);
        assert_eq!(outcome.contributors, [1, 2, 4].map(|number| id(number).share()));
        assert_eq!(late.contributions(), (3, 3));
    });
}

#[test]
fn false_ones_among_them_are_named_at_the_start() {
    each_suite(3, 4, |setting| {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut late = setting.machine(3);
        for number in [1, 2, 4] {
            let mut machine = setting.machine(number);
            // A quicker party has seen the false share and made everybody prove their shares.
            for said in [Some(own_share(&mut machine)), own_proof(&mut machine, 3)].into_iter().flatten() {
                let lie = number == 2;
                let payload = if lie { shifted(setting.suite, &said.payload, &Delta::minus(1)) } else { said.payload };
                let message = Input::Message { from: id(number), slot: said.slot, channel: said.channel, payload };
                assert!(late.handle(message, &mut rng).is_empty());
            }
        }
        let mut effects = late.handle(Input::Start, &mut rng);
        effects.retain(|effect| !matches!(effect, Effect::Send { .. }));
        let [Effect::Blame(blame), Effect::Finished(Ok(outcome))] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((blame.party, blame.offence.name()), (id(2), "invalid_share"));
        assert_eq!(result_of(outcome), setting.result);
    });
}
