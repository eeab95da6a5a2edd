//! Signatures, coin values and their proofs: only the known ones verify. Signatures in DER have one encoding.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{choose, plant, seeds_by_sample};
use theta_schemes::signatures::ecdsa::{from_der, to_der};
use theta_schemes::{Purpose, Suite};

fuzz_target!(init: plant("results", seeds()), |input: &[u8]| {
    let Some((sample, bytes)) = choose(input) else { return };
    if let Some(signature) = from_der(bytes) {
        assert_eq!(to_der(&signature).as_deref(), Some(bytes));
    }
    let message = sample.statement.as_statement();
    // The input is the signature, or the proof of the known value, or both.
    let split = bytes.split_at_checked(sample.result.len());
    for (result, proof) in [Some((bytes, &[][..])), Some((&*sample.result, bytes)), split].into_iter().flatten() {
        if sample.public.verify(message.bytes(), result, proof).is_ok() {
            // Of ECDSA on P-256, (r, q - s) is a signature as well.
            let same_r = sample.public.suite() == Suite::EcdsaP256 && result.get(..32) == sample.result.get(..32);
            assert!(result == sample.result || same_r);
            // A signature proves itself, so the proof that comes with it is ignored.
            assert!(sample.public.suite().purpose() == Purpose::Sign || proof == sample.proof);
        }
    }
});

fn seeds() -> Vec<Vec<u8>> {
    seeds_by_sample(|sample| {
        let both = [&*sample.result, &sample.proof].concat();
        [sample.result.clone(), sample.proof.clone(), both].into_iter().chain(to_der(&sample.result)).collect()
    })
}
