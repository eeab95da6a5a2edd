//! The states of oblivious transfer, of products on it and of MASCOT, each with the messages that it takes changed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{mpc::transfers, plant};

fuzz_target!(init: plant("transfers", transfers::transfer_seeds()), |input: &[u8]| transfers::transfers(input));
