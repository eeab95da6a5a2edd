//! The frames of a connection between nodes, arriving in pieces of any size.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{mesh, plant};

fuzz_target!(init: plant("mesh_frames", seeds()), |input: &[u8]| {
    let Some((piece, stream)) = input.split_first() else { return };
    let (whole, failed) = mesh::frames(stream, stream.len().max(1));
    assert!(stream.starts_with(&whole), "what was read is not what stood there");
    assert_eq!(mesh::frames(stream, usize::from(*piece).max(1)), (whole, failed), "in pieces of {piece}");
});

fn seeds() -> Vec<Vec<u8>> {
    let frames = mesh::samples();
    [frames.concat()].iter().chain(&frames).map(|stream| [&[3], &**stream].concat()).collect()
}
