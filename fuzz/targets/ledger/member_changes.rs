//! Changes of members: who comes, goes, or has another machine or card.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{group, plant};

fuzz_target!(init: plant("member_changes", group::member_seeds()), |input: &[u8]| group::member_changes(input));
