//! Programs on Semi-OT, MASCOT and MASCOT-, between two parties of which one sends what the input says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{mpc::programs, plant};

fuzz_target!(init: plant("black_boxes_on_transfers", programs::program_seeds(3, 2, 60, 10)), |input: &[u8]| programs::on_transfers(input));
