//! The one file of a client.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{group, plant};

fuzz_target!(init: plant("client_files", group::client_seeds()), |input: &str| group::client_file(input));
