//! Shares of every one-round suite: whatever decodes encodes to the same bytes, no share but the true one verifies, and
//! combination never gives another result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{Sample, choose, plant, rng, seeds_by_sample};
use theta_schemes::{ThresholdScheme, with_scheme};
use theta_sharing::ShareIndex;

fuzz_target!(init: plant("shares", seeds()), |input: &[u8]| {
    let Some((sample, bytes)) = choose(input) else { return };
    with_scheme!(sample.public.suite(), |S| if one_round {
        check::<S>(sample.public.get::<S>().expect("a key of its suite"), sample, bytes);
    } else {});
});

fn check<S: ThresholdScheme>(public: &S::PublicKey, sample: &Sample, bytes: &[u8]) {
    let index = |party: u16| ShareIndex::try_from(party).expect("not zero");
    let Ok(share) = S::decode_share(index(1), bytes) else { return };
    assert_eq!(S::encode_share(&share), bytes);
    let request = S::parse_request(public, &sample.statement.as_statement()).expect("the known statement");
    let holds = S::verify_shares(public, &request, &[share], &mut rng()).is_empty();
    assert!(!holds || bytes == sample.shares[0], "another share that verifies");
    let shares = [(index(1), bytes), (index(2), &*sample.shares[1])];
    if let Ok(combined) = sample.public.combine(&sample.statement, &shares, &mut rng()) {
        assert_eq!(combined.result.expose(), &sample.result);
    }
}

fn seeds() -> Vec<Vec<u8>> {
    seeds_by_sample(|sample| sample.shares.clone())
}
