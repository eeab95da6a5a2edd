//! The file in which a client keeps what it has checked (`spec/client.md`): anybody may read it, and changing it fools nobody.
//!
//! Reading it does not repeat all signature checks, which would take seconds for a long history of many nodes. Entries are chained by
//! digests, so the votes for an entry stand for all entries before it, as long as the members were the same. So the votes are checked
//! for the last entry, and for each one after which the members are others.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::Path,
};

use theta_ledger::{CertifiedEntry, Digest, Genesis, LedgerId, LedgerState};

/// With what the file begins; behind it comes the ledger's id.
const MARK: &[u8] = b"theta ledger 1\n";
/// The longest file in bytes. A history that is longer is kept up to here.
const MOST: usize = 64 << 20;
/// A length in bytes, before each entry.
const LENGTH: usize = 4;

/// The file without an entry.
pub(super) fn empty(id: &LedgerId) -> Vec<u8> {
    [MARK, id.as_bytes()].concat()
}

/// Adds an entry; `false` if the file would be too long.
pub(super) fn append(file: &mut Vec<u8>, certified: &CertifiedEntry) -> bool {
    let bytes = certified.encode();
    let Ok(length) = u32::try_from(bytes.len()) else { return false };
    let fits = file.len().saturating_add(bytes.len()).saturating_add(LENGTH) <= MOST;
    if fits {
        file.extend_from_slice(&length.to_be_bytes());
        file.extend_from_slice(&bytes);
    }
    fits
}

/// The contents of the file; `None` if there is none that can be read.
pub(super) fn load(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(u64::try_from(MOST).unwrap_or(u64::MAX)).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The lock of the file's directory, which whoever writes the file holds; `None` while another process has it. Anybody who may read the
/// directory can take it, and keep it.
pub(super) fn lock(path: &Path) -> io::Result<Option<Locked>> {
    let lock = File::open(folder(path))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(Locked(lock))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock, until it is dropped.
pub(super) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the same open file: closing it here would not be enough.
        let _ = self.0.unlock();
    }
}

/// The directory in which the file is.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the file whole or not at all, and not if what is there has more.
pub(super) fn save(_: &Locked, path: &Path, bytes: &[u8], has_more: impl FnOnce(&[u8]) -> bool) -> io::Result<()> {
    if load(path).is_some_and(|kept| has_more(&kept)) {
        return Ok(());
    }
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(io::Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = path.with_file_name(format!(".{name}.{:016x}", u64::from_be_bytes(number)));
    let written = OpenOptions::new().write(true).create_new(true).open(&beside);
    let written = written.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// The state that the file's entries lead to, as far as they are certified, and where the last of them ends.
pub(super) fn read(file: &[u8], genesis: &Genesis) -> (LedgerState, usize) {
    let entries = entries(file, &genesis.id());
    let end = |taken: &[(CertifiedEntry, usize)]| taken.last().map_or(MARK.len() + 32, |(_, end)| *end);
    if let Some(state) = skip(&entries, genesis) {
        return (state, end(&entries));
    }
    // Somebody has changed the file: what is certified in it is good all the same.
    let mut state = LedgerState::new(genesis);
    let good = entries.iter().take_while(|(certified, _)| state.advance(certified).is_ok()).count();
    (state, end(entries.get(..good).unwrap_or_default()))
}

/// All entries that can be decoded, each with the place where it ends. A file of another ledger has none.
fn entries(file: &[u8], id: &LedgerId) -> Vec<(CertifiedEntry, usize)> {
    let mut entries = Vec::new();
    let Some(mut rest) = file.strip_prefix(MARK).and_then(|rest| rest.strip_prefix(id.as_bytes().as_slice())) else {
        return entries;
    };
    while let Some((bytes, behind)) = first(rest) {
        let Ok(certified) = CertifiedEntry::decode(bytes) else { break };
        rest = behind;
        entries.push((certified, file.len().saturating_sub(rest.len())));
    }
    entries
}

/// The digest of the entry at this height; `None` if the file is of another ledger, or does not reach as far.
pub(super) fn digest_at(file: &[u8], id: &LedgerId, height: u64) -> Option<Digest> {
    let mut rest = file.strip_prefix(MARK)?.strip_prefix(id.as_bytes().as_slice())?;
    for _ in 1..height {
        rest = first(rest)?.1;
    }
    let certified = CertifiedEntry::decode(first(rest)?.0).ok()?;
    (certified.entry.height == height).then(|| certified.entry.digest(id))
}

/// The first entry of these, and what is behind it.
fn first(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, behind) = entries.split_first_chunk::<LENGTH>()?;
    behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX))
}

/// The state after all entries, if the votes for the last one, and for each one that changes who votes, are true.
fn skip(entries: &[(CertifiedEntry, usize)], genesis: &Genesis) -> Option<LedgerState> {
    let mut checked: BTreeSet<usize> = entries.len().checked_sub(1).into_iter().collect();
    // A second time if members change: their votes are checked with what is known of the members before.
    loop {
        let (mut state, mut changes) = (LedgerState::new(genesis), BTreeSet::new());
        let mut members = (state.members().to_vec(), state.quorum());
        for (at, (certified, _)) in entries.iter().enumerate() {
            let taken = if checked.contains(&at) { state.advance(certified) } else { state.restore(&certified.entry) };
            taken.ok()?;
            if members.0 != state.members() || members.1 != state.quorum() {
                members = (state.members().to_vec(), state.quorum());
                changes.insert(at);
            }
        }
        if changes.is_subset(&checked) {
            return Some(state);
        }
        checked.append(&mut changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that forks while its thread keeps the ledger leaves the child the same open file.
    #[test]
    fn a_child_keeps_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("ledger");
        let locked = lock(&place).unwrap().unwrap();
        let of_the_child = locked.0.try_clone().unwrap();
        assert!(lock(&place).unwrap().is_none());
        drop(locked);
        assert!(lock(&place).unwrap().is_some());
        drop(of_the_child);
    }
}
