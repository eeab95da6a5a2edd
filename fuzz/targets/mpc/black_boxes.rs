//! Programs on the black boxes with an honest majority, among parties of which one sends what the input says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{mpc::programs, plant};

fuzz_target!(init: plant("black_boxes", programs::program_seeds(4, 3, 30, 1)), |input: &[u8]| programs::honest_majority(input));
