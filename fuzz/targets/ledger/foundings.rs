//! Cards, foundings and operators' keys, as bytes and as text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{group, plant};

fuzz_target!(init: plant("foundings", group::founding_seeds()), |input: &[u8]| group::foundings(input));
