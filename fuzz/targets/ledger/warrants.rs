//! What operators of small groups sign, as bytes and as text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{group, plant};

fuzz_target!(init: plant("warrants", group::warrant_seeds()), |input: &[u8]| group::warrants(input));
