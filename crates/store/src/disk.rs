//! A disk that forgets, for tests and the simulator.
//!
//! What was written since the last sync is remembered apart: when the power fails, each of those writes happened or not, in
//! any combination, and one of them may have happened in part. That is what a file system promises, and no more.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rand_core::Rng;
use redb::StorageBackend;

/// What a disk writes as a whole.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Resize(len) => content.resize(*len, 0),
            Self::Write { offset, bytes } => {
                let end = offset.saturating_add(bytes.len());
                if content.len() < end {
                    // The file was not grown before the power failed; the write was.
                    content.resize(end, 0);
                }
                if let Some(place) = content.get_mut(*offset..end) {
                    place.copy_from_slice(bytes);
                }
            }
        }
    }
}

#[derive(Default)]
struct State {
    /// What is there after a power failure in any case.
    durable: Vec<u8>,
    /// What the running system sees.
    seen: Vec<u8>,
    /// What leads from one to the other.
    unsynced: Vec<Change>,
    /// Changes and syncs until the power fails.
    until_failure: Option<u64>,
    /// How many changes and syncs there were.
    operations: u64,
    /// Changes until there is no more room; then they fail, and what is there can be read and synced.
    until_full: Option<u64>,
    /// Whether syncs fail, and forget what was to be synced: the system shows it all the same.
    syncs_fail: bool,
    /// Counts the power failures: backends of before see only errors.
    life: u64,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

impl core::fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SimulatedDisk({} bytes)", self.state().seen.len())
    }
}

impl SimulatedDisk {
    /// A disk with this content.
    #[must_use]
    pub fn with_content(content: Vec<u8>) -> Self {
        let state = State { durable: content.clone(), seen: content, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk for [`crate::Store::open_on`], until the next power failure.
    #[must_use]
    pub fn backend(&self) -> impl StorageBackend + use<> {
        Attached { disk: self.clone(), life: self.state().life }
    }

    /// What the running system sees: a copy of the file as an operator would take it.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        self.state().seen.clone()
    }

    /// Puts another file in its place, durably, under whoever has it open.
    pub fn replace(&self, content: Vec<u8>) {
        let mut state = self.state();
        state.durable.clone_from(&content);
        state.seen = content;
        state.unsynced.clear();
    }

    /// How many writes, changes of length and syncs there were.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets all fail after so many more writes, changes of length and syncs.
    pub fn fail_after(&self, operations: u64) {
        self.state().until_failure = Some(operations);
    }

    /// Lets the disk be full after so many more writes and changes of length: these fail, reads and syncs do not.
    pub fn fill_after(&self, changes: u64) {
        self.state().until_full = Some(changes);
    }

    /// Makes room again.
    pub fn make_room(&self) {
        self.state().until_full = None;
    }

    /// Lets syncs fail, or not. A sync that fails forgets what was written since the last one, and the running system does not
    /// notice: as Linux, which marks pages clean that it could not write.
    pub fn fail_syncs(&self, fail: bool) {
        self.state().syncs_fail = fail;
    }

    /// Fails the power, and turns it on again. Backends of before see only errors.
    pub fn fail_power(&self, rng: &mut impl Rng) {
        let mut state = self.state();
        let mut content = core::mem::take(&mut state.durable);
        for change in core::mem::take(&mut state.unsynced) {
            match rng.next_u32() % 4 {
                0 => {}
                1 => tear(&change, rng).apply(&mut content),
                _ => change.apply(&mut content),
            }
        }
        state.durable.clone_from(&content);
        state.seen = content;
        state.until_failure = None;
        state.until_full = None;
        state.syncs_fail = false;
        state.life += 1;
    }
}

/// The first sectors of a write.
fn tear(change: &Change, rng: &mut impl Rng) -> Change {
    let Change::Write { offset, bytes } = change else { return change.clone() };
    let sectors = bytes.len().div_ceil(SECTOR).max(1);
    let kept = usize::try_from(rng.next_u32()).unwrap_or(0) % sectors;
    let bytes = bytes.get(..kept * SECTOR).unwrap_or_default().to_vec();
    Change::Write { offset: *offset, bytes }
}

/// The disk as one running system has it.
#[derive(Debug)]
struct Attached {
    disk: SimulatedDisk,
    life: u64,
}

impl Attached {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.life == self.life && state.until_failure != Some(0) { Ok(state) } else { Err(power()) }
    }

    /// One change or sync more, if there is still power.
    fn step(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state()?;
        state.operations += 1;
        if let Some(left) = &mut state.until_failure {
            *left = left.saturating_sub(1);
        }
        Ok(state)
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.step()?;
        match &mut state.until_full {
            Some(0) => return Err(io::ErrorKind::StorageFull.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        change.apply(&mut state.seen);
        state.unsynced.push(change);
        Ok(())
    }
}

fn power() -> io::Error {
    io::Error::other("the power failed")
}

fn place(offset: u64, len: usize) -> io::Result<core::ops::Range<usize>> {
    let start = usize::try_from(offset).map_err(io::Error::other)?;
    Ok(start..start.checked_add(len).ok_or_else(|| io::Error::other("beyond all disks"))?)
}

impl StorageBackend for Attached {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state()?;
        let bytes = state.seen.get(place(offset, out.len())?).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::Resize(usize::try_from(len).map_err(io::Error::other)?))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.step()?;
        if state.syncs_fail {
            state.unsynced.clear();
            return Err(io::Error::other("the disk does not sync"));
        }
        let State { durable, unsynced, .. } = &mut *state;
        unsynced.drain(..).for_each(|change| change.apply(durable));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let place = place(offset, data.len())?;
        self.change(Change::Write { offset: place.start, bytes: data.to_vec() })
    }
}
