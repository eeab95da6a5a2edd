//! Finds and restores the states of ChaCha generators in the memory of a process, as resuming a snapshot does.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt as _,
};

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng as _, SeedableRng as _},
};

use crate::{attack::Trouble, process::Stopped};

/// The length of a generator's buffer, and of its key, counter and stream together, in bytes.
const BUFFER: usize = 256;
const CORE: usize = 48;
/// The alignment of generators in memory.
const ALIGNMENT: usize = 16;
/// Blocks in a buffer: filling it advances the counter by this many.
const BLOCKS: u64 = 4;
/// Words in a block.
const WORDS: u64 = 16;
/// Bounds on the counter and the number of the stream of any generator.
const MOST_BLOCKS: u64 = 1 << 32;
const MOST_STREAMS: u64 = 1 << 10;
/// Longer regions do not belong to the heap.
const LONGEST: u64 = 1 << 30;

/// The generators of a process, with their states.
pub(super) struct Generators {
    pid: u32,
    /// Their addresses, and the bytes of buffer and core at these.
    states: Vec<(u64, Vec<u8>)>,
}

impl Generators {
    /// Finds the generators: a buffer must be the output of its own key and counter.
    pub(super) fn of(pid: u32) -> Result<Self, Trouble> {
        let stopped = Stopped::stop(pid)?;
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let mut states = Vec::new();
        for (from, len) in regions(&fs::read_to_string(format!("/proc/{pid}/maps"))?) {
            let mut bytes = vec![0; len];
            // Regions that cannot be read hold no generators.
            if memory.read_exact_at(&mut bytes, from).is_ok() {
                let found = generators_in(&bytes).into_iter();
                states.extend(found.map(|(at, state)| (from + u64::try_from(at).unwrap_or(u64::MAX), state)));
            }
        }
        drop(stopped);
        Ok(Self { pid, states })
    }

    pub(super) const fn len(&self) -> usize {
        self.states.len()
    }

    /// Restores these states in the process.
    pub(super) fn put_back(&self) -> Result<(), Trouble> {
        let _stopped = Stopped::stop(self.pid)?;
        let memory = OpenOptions::new().write(true).open(format!("/proc/{}/mem", self.pid))?;
        for (at, state) in &self.states {
            memory.write_all_at(state, *at)?;
        }
        Ok(())
    }
}

/// Start and length of the regions that can be read and written and belong to no file.
fn regions(maps: &str) -> Vec<(u64, usize)> {
    let region = |line: &str| {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?);
        let name = fields.nth(3).unwrap_or_default();
        let (from, to) = range.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let len = to.checked_sub(from)?;
        let usual = rights.starts_with("rw") && (name.is_empty() || name == "[heap]") && len < LONGEST;
        usual.then_some((from, usize::try_from(len).ok()?))
    };
    maps.lines().filter_map(region).collect()
}

/// Offsets and states of all generators in a stretch of memory; the buffer is before or behind the core.
fn generators_in(memory: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    for at in (0..=memory.len().saturating_sub(CORE)).step_by(ALIGNMENT) {
        let Some(core) = memory.get(at..at + CORE) else { continue };
        if !may_be_core(core) {
            continue;
        }
        let before = at.checked_sub(BUFFER).map(|from| (from, from));
        for (buffer, start) in before.into_iter().chain([(at + CORE, at)]) {
            let made = memory.get(buffer..buffer + BUFFER).is_some_and(|buffer| is_made_by(core, buffer));
            if let Some(state) = memory.get(start..start + CORE + BUFFER).filter(|_| made) {
                found.push((start, state.to_vec()));
            }
        }
    }
    found
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let (number, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u64::from_le_bytes(*number))
}

/// Whether counter and stream, which follow the key, can be those of a generator that was used.
fn may_be_core(core: &[u8]) -> bool {
    let (Some(counter), Some(stream)) = (number(core, 32), number(core, 40)) else { return false };
    (BLOCKS..MOST_BLOCKS).contains(&counter) && counter.is_multiple_of(BLOCKS) && stream < MOST_STREAMS
}

/// Whether the buffer is the latest output of key, counter and stream. Its first word says how much of it is used up.
fn is_made_by(core: &[u8], buffer: &[u8]) -> bool {
    let (Some((key, _)), Some(counter), Some(stream)) = (core.split_first_chunk(), number(core, 32), number(core, 40))
    else {
        return false;
    };
    let mut rng = ChaCha20Rng::from_seed(*key);
    rng.set_stream(stream);
    rng.set_word_pos(u128::from(counter.saturating_sub(BLOCKS) * WORDS));
    let words: Vec<u32> = (0..WORDS).map(|_| rng.next_u32()).collect();
    let (first, _) = buffer.split_at(buffer.len().min(64));
    first.chunks_exact(4).zip(words).skip(1).all(|(bytes, word)| bytes == word.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds a generator of this program once it is in use, not before; restored, it repeats its output.
    #[test]
    fn a_generator_is_found_and_put_back() {
        let mut rng = Box::new(ChaCha20Rng::from_seed([3; 32]));
        rng.set_stream(5);
        rng.next_u32();
        let address: *const ChaCha20Rng = &raw const *rng;
        let pid = std::process::id();
        let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem").unwrap();
        let mut bytes = vec![0; size_of::<ChaCha20Rng>()];
        let at = u64::try_from(address.addr()).unwrap();
        memory.read_exact_at(&mut bytes, at).unwrap();
        let found = generators_in(&bytes);
        assert_eq!(found.iter().map(|(at, state)| (*at, state.len())).collect::<Vec<_>>(), [(0, CORE + BUFFER)]);
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let holds = |(from, len): &(u64, usize)| (*from..from + u64::try_from(*len).unwrap()).contains(&at);
        assert!(regions(&maps).iter().any(holds));
        let drawn: Vec<u32> = (0..100).map(|_| rng.next_u32()).collect();
        memory.write_all_at(&found[0].1, at).unwrap();
        let rng = core::hint::black_box(&mut rng);
        assert_eq!((0..100).map(|_| rng.next_u32()).collect::<Vec<_>>(), drawn);
    }

    #[test]
    fn what_is_no_generator_is_none() {
        assert!(generators_in(&[0; 4096]).is_empty() && generators_in(&[7; 4096]).is_empty());
    }
}
