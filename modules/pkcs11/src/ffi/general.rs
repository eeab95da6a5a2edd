//! The beginning and the end of the module in a process, what it is, and random bytes.

use std::os::raw::c_void;

use cryptoki_sys::{
    CK_BYTE, CK_C_INITIALIZE_ARGS, CK_INFO, CK_RV, CK_SESSION_HANDLE, CK_ULONG, CK_VERSION, CKR_ARGUMENTS_BAD,
    CKR_FUNCTION_FAILED,
};

use super::memory::{call, give, long, padded, read, write};
use crate::{
    process::{self, module},
    refusal::{Outcome, Refusal},
};

pub(super) const MANUFACTURER: &str = "Thetacrypt";
pub(super) const VERSION: CK_VERSION = CK_VERSION { major: 0, minor: 1 };

/// The most random bytes at once.
const MOST_RANDOM: usize = 16 << 20;

/// `C_Initialize`: begins in this process.
pub unsafe extern "C" fn C_Initialize(arguments: *mut c_void) -> CK_RV {
    call(|| {
        if !arguments.is_null() {
            // SAFETY: the host gives null or `CK_C_INITIALIZE_ARGS`.
            let given = unsafe { read(arguments.cast::<CK_C_INITIALIZE_ARGS>()) }?;
            check_arguments(&given)?;
        }
        process::initialise()
    })
}

/// The module has threads and locks of the system's, and uses no others. It does not look at what hosts say of both: p11-kit, and so GnuTLS and all
/// that is on it, tells every module that it may make no threads, and brings locks of its own, which are the system's.
fn check_arguments(given: &CK_C_INITIALIZE_ARGS) -> Outcome<()> {
    let locks = [
        given.CreateMutex.is_some(),
        given.DestroyMutex.is_some(),
        given.LockMutex.is_some(),
        given.UnlockMutex.is_some(),
    ];
    let (any, all) = (locks.contains(&true), !locks.contains(&false));
    if !given.pReserved.is_null() || any != all {
        return Err(Refusal(CKR_ARGUMENTS_BAD));
    }
    Ok(())
}

/// `C_Finalize`: ends in this process.
pub unsafe extern "C" fn C_Finalize(reserved: *mut c_void) -> CK_RV {
    call(|| if reserved.is_null() { process::finalise() } else { Err(Refusal(CKR_ARGUMENTS_BAD)) })
}

/// `C_GetInfo`.
pub unsafe extern "C" fn C_GetInfo(info: *mut CK_INFO) -> CK_RV {
    call(|| {
        module()?;
        let told = CK_INFO {
            cryptokiVersion: CK_VERSION { major: 2, minor: 40 },
            manufacturerID: padded(MANUFACTURER),
            flags: 0,
            libraryDescription: padded("Threshold keys of a group"),
            libraryVersion: VERSION,
        };
        // SAFETY: the host's, as the module's documentation says.
        unsafe { write(info, told) }
    })
}

/// `C_GenerateRandom`: of this machine's system, as every process here gets them. The nodes are not asked.
pub unsafe extern "C" fn C_GenerateRandom(session: CK_SESSION_HANDLE, at: *mut CK_BYTE, len: CK_ULONG) -> CK_RV {
    call(|| {
        module()?.session(session)?;
        let len = usize::try_from(len).ok().filter(|len| *len <= MOST_RANDOM).ok_or(Refusal(CKR_ARGUMENTS_BAD))?;
        let mut random = vec![0; len];
        getrandom::fill(&mut random).map_err(|_| Refusal(CKR_FUNCTION_FAILED))?;
        let mut room = long(len);
        // SAFETY: the host's, and `room` is ours.
        if at.is_null() { Err(Refusal(CKR_ARGUMENTS_BAD)) } else { unsafe { give(&random, at, &raw mut room) } }
    })
}
