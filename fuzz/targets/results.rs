//! Signatures, coin values and their proofs: only the known ones verify.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{choose, plant, seeds_by_sample};
use theta_schemes::Purpose;

fuzz_target!(init: plant("results", seeds()), |input: &[u8]| {
    let Some((sample, bytes)) = choose(input) else { return };
    let message = sample.statement.as_statement();
    // The input is the signature, or the proof of the known value, or both.
    let split = bytes.split_at_checked(sample.result.len());
    for (result, proof) in [Some((bytes, &[][..])), Some((&*sample.result, bytes)), split].into_iter().flatten() {
        if sample.public.verify(message.bytes(), result, proof).is_ok() {
            assert_eq!(result, sample.result);
            // A signature proves itself, so the proof that comes with it is ignored.
            assert!(sample.public.suite().purpose() == Purpose::Sign || proof == sample.proof);
        }
    }
});

fn seeds() -> Vec<Vec<u8>> {
    seeds_by_sample(|sample| {
        vec![sample.result.clone(), sample.proof.clone(), [&*sample.result, &sample.proof].concat()]
    })
}
