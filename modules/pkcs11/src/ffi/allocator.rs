//! One allocator for the C library beneath, whatever the host has.

use std::ffi::{c_int, c_void};

unsafe extern "C" {
    /// The allocator's, of which the module also has what it frees.
    fn free(memory: *mut c_void);
}

/// Frees memory of which the size is known: the name by which aws-lc looks for an allocator that wants to know it, jemalloc above all.
/// aws-lc takes memory by `malloc`, and gives it back by this function where some library has it. In a host that has jemalloc (BIND) and loads
/// the module so that it looks for names in its own libraries first (`RTLD_DEEPBIND`, as pkcs11-provider does), the one was the
/// system's and the other jemalloc's, which then gave the host memory of the system's heap. Since the module has this name itself,
/// both are found in the same place.
///
/// # Safety
/// `memory` is null or what `malloc` gave, and is not used again.
// SAFETY: where the host has the name, too, and is asked first, its `malloc` is asked first, too, and belongs to it.
#[unsafe(no_mangle)]
unsafe extern "C" fn sdallocx(memory: *mut c_void, _size: usize, _flags: c_int) {
    // SAFETY: the caller's.
    unsafe { free(memory) };
}
