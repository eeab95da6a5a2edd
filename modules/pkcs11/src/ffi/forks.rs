//! How many forks there were from the first process with the module down to this one.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

static FORKS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    /// What is called at each fork: before it, and after it in the parent and in the child (POSIX).
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// In a child, where hardly anything may be called.
extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts from now on. Children that are made past the C library (`clone`) are told by their number alone.
pub(crate) fn count_forks() {
    static COUNTS: AtomicBool = AtomicBool::new(false);
    if !COUNTS.swap(true, Ordering::Relaxed) {
        // SAFETY: the function touches one atomic, and the module stays in memory when a host unloads it. Where the system has no memory for
        // it, numbers of processes alone are left.
        let _ = unsafe { pthread_atfork(None, None, Some(forked)) };
    }
}

/// How many there were.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(status: c_int) -> !;
    }

    #[test]
    fn a_child_has_another_number_of_forks() {
        count_forks();
        let before = forks();
        // SAFETY: the child touches one atomic and ends.
        let child = unsafe { fork() };
        if child == 0 {
            let status = if forks() == before + 1 { 7 } else { 8 };
            // SAFETY: it ends here.
            unsafe { _exit(status) };
        }
        let mut status = 0;
        // SAFETY: the status is written to its place.
        assert_eq!(unsafe { waitpid(child, ptr::from_mut(&mut status), 0) }, child);
        assert_eq!((status >> 8, forks()), (7, before));
    }
}
