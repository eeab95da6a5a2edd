//! Sessions, and who the host is in them.

use std::os::raw::c_void;

use cryptoki_sys::{
    CK_FLAGS, CK_NOTIFY, CK_RV, CK_SESSION_HANDLE, CK_SESSION_INFO, CK_SLOT_ID, CK_ULONG, CK_USER_TYPE, CK_UTF8CHAR,
    CKF_FIND_OBJECTS, CKF_RW_SESSION, CKF_SERIAL_SESSION, CKF_SIGN, CKF_VERIFY, CKR_ARGUMENTS_BAD, CKR_PIN_LEN_RANGE,
    CKR_SESSION_PARALLEL_NOT_SUPPORTED, CKR_USER_TYPE_INVALID, CKU_USER,
};

use super::memory::{bytes, call, write};
use crate::{process::module, refusal::Refusal};

/// The longest PIN in bytes.
pub(super) const MOST_PIN: usize = 1024;

/// `C_OpenSession`. The host is never called back.
pub unsafe extern "C" fn C_OpenSession(
    slot: CK_SLOT_ID,
    flags: CK_FLAGS,
    _application: *mut c_void,
    _notify: CK_NOTIFY,
    session: *mut CK_SESSION_HANDLE,
) -> CK_RV {
    call(|| {
        let module = module()?;
        if flags & CKF_SERIAL_SESSION == 0 {
            return Err(Refusal(CKR_SESSION_PARALLEL_NOT_SUPPORTED));
        }
        if session.is_null() {
            return Err(Refusal(CKR_ARGUMENTS_BAD));
        }
        let opened = module.open_session(slot, flags & CKF_RW_SESSION != 0)?;
        // SAFETY: the host's.
        unsafe { write(session, opened) }
    })
}

/// `C_CloseSession`.
pub unsafe extern "C" fn C_CloseSession(session: CK_SESSION_HANDLE) -> CK_RV {
    call(|| module()?.sessions().close(session))
}

/// `C_CloseAllSessions`.
pub unsafe extern "C" fn C_CloseAllSessions(slot: CK_SLOT_ID) -> CK_RV {
    call(|| module()?.close_all_sessions(slot))
}

/// `C_GetSessionInfo`.
pub unsafe extern "C" fn C_GetSessionInfo(session: CK_SESSION_HANDLE, info: *mut CK_SESSION_INFO) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        let writable = if session.is_writable() { CKF_RW_SESSION } else { 0 };
        let flags = CKF_SERIAL_SESSION | writable;
        let told = CK_SESSION_INFO { slotID: session.slot(), state: session.state(), flags, ulDeviceError: 0 };
        // SAFETY: the host's.
        unsafe { write(info, told) }
    })
}

/// `C_SessionCancel` of PKCS#11 3.0.
pub unsafe extern "C" fn C_SessionCancel(session: CK_SESSION_HANDLE, flags: CK_FLAGS) -> CK_RV {
    call(|| {
        let has = |flag: CK_FLAGS| flags & flag != 0;
        module()?.session(session)?.cancel(has(CKF_SIGN), has(CKF_VERIFY), has(CKF_FIND_OBJECTS));
        Ok(())
    })
}

/// `C_Login`.
pub unsafe extern "C" fn C_Login(
    session: CK_SESSION_HANDLE,
    user: CK_USER_TYPE,
    pin: *mut CK_UTF8CHAR,
    len: CK_ULONG,
) -> CK_RV {
    call(|| {
        let module = module()?;
        module.session(session)?;
        if user != CKU_USER {
            return Err(Refusal(CKR_USER_TYPE_INVALID));
        }
        // SAFETY: the host's. The PIN is not copied.
        let pin = unsafe { bytes(pin, len, MOST_PIN, CKR_PIN_LEN_RANGE) }?;
        module.sessions().log_in(session, pin)
    })
}

/// `C_Logout`.
pub unsafe extern "C" fn C_Logout(session: CK_SESSION_HANDLE) -> CK_RV {
    call(|| module()?.session(session)?.token().check_log_out())
}
