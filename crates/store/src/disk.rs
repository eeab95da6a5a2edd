//! A simulated disk that loses unsynced writes, for tests and the simulator.
//!
//! Writes since the last sync are kept apart. When the power fails, each of them happened or not, in any combination,
//! and one of them may have happened in part. A file system promises that and no more.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rand_core::Rng;
use redb::StorageBackend;

/// The unit in which a disk writes, in bytes.
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
                    // The write survived the power failure; the growth of the file did not.
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
    /// The unsynced changes that lead from `durable` to `seen`.
    unsynced: Vec<Change>,
    /// How many changes and syncs succeed before the power fails.
    until_failure: Option<u64>,
    /// How many changes and syncs there were.
    operations: u64,
    /// How many bytes were written.
    written: u64,
    /// How many reads there were.
    reads: u64,
    /// How many changes succeed before the disk is full. Then changes fail; reads and syncs do not.
    until_full: Option<u64>,
    /// Whether syncs fail and drop what was to be synced, while the system still shows it.
    syncs_fail: bool,
    /// Counts the power failures: backends from before one get nothing but errors.
    life: u64,
}

/// A disk in memory. Clones share one disk.
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

    /// How many bytes were written to it so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.state().written
    }

    /// The storage for [`crate::Store::open_on`], until the next power failure.
    #[must_use]
    pub fn backend(&self) -> impl StorageBackend + use<> {
        Attached { disk: self.clone(), life: self.state().life }
    }

    /// What the running system sees: a copy of the file as an operator would make it.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        self.state().seen.clone()
    }

    /// Replaces the content, durably, while others have it open.
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

    /// How many reads there were.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Makes everything fail after so many more writes, changes of length and syncs, unless it fails sooner or has failed: until the power
    /// has failed ([`SimulatedDisk::fail_power`]).
    pub fn fail_after(&self, operations: u64) {
        let mut state = self.state();
        state.until_failure = Some(state.until_failure.map_or(operations, |left| left.min(operations)));
    }

    /// Whether nothing works any more ([`SimulatedDisk::fail_after`]), until the power has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.state().until_failure == Some(0)
    }

    /// Makes the disk full after so many more writes and changes of length: these fail, reads and syncs do not.
    pub fn fill_after(&self, changes: u64) {
        self.state().until_full = Some(changes);
    }

    /// Makes room again.
    pub fn make_room(&self) {
        self.state().until_full = None;
    }

    /// Makes syncs fail, or succeed again. A failed sync drops what was written since the last one, and the running
    /// system does not notice: Linux marks pages clean that it could not write.
    pub fn fail_syncs(&self, fail: bool) {
        self.state().syncs_fail = fail;
    }

    /// Turns the power off and on again. Backends from before get nothing but errors.
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

/// The disk as one running system sees it.
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

    /// Counts one change or sync; fails if there is no power.
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
        let mut state = self.state()?;
        state.reads += 1;
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
        self.change(Change::Write { offset: place.start, bytes: data.to_vec() })?;
        let mut state = self.disk.state();
        state.written = state.written.saturating_add(data.len() as u64);
        Ok(())
    }
}
