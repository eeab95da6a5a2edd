//! What one member sends to another's replica of the ledger, message after message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{group, plant};

fuzz_target!(init: plant("replica_messages", group::replica_seeds()), |input: &[u8]| group::replica_messages(input));
