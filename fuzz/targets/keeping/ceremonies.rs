//! A party of a ceremony among honest ones and one liar that signs anything: the party does not panic, never contradicts
//! itself, even after a restart, and blames nobody but the liar.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use theta_fuzz::ceremony::{Recording, play};
use theta_fuzz::plant;

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(Recording::all);

fuzz_target!(init: plant("ceremonies", seeds()), |bytes: &[u8]| {
    let Some((first, script)) = bytes.split_first() else { return };
    if let Some(recording) = RECORDINGS.get(usize::from(*first) % RECORDINGS.len()) {
        play(recording, script);
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let numbered = (0_u8..).zip(RECORDINGS.iter());
    let scripts =
        numbered.flat_map(|(number, recording)| recording.scripts().into_iter().map(move |script| (number, script)));
    scripts.map(|(number, script)| [&[number], &*script].concat()).collect()
}
