//! Signatures, made by the group and verified here.

use cryptoki_sys::{
    CK_BYTE, CK_MECHANISM, CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CK_ULONG, CKR_BUFFER_TOO_SMALL,
    CKR_DATA_LEN_RANGE, CKR_SIGNATURE_LEN_RANGE,
};

use super::memory::{bytes, call, give, long, mechanism, read, write};
use crate::{
    process::module,
    refusal::{Outcome, Refusal},
    sessions::{MOST_MESSAGE, Session},
};

/// The longest signature in bytes that is verified.
const MOST_SIGNATURE: usize = 4096;

/// `C_SignInit`. Without a mechanism it ends what was begun, as PKCS#11 3.0 has it.
pub unsafe extern "C" fn C_SignInit(
    session: CK_SESSION_HANDLE,
    mechanism_at: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        match unsafe { mechanism(mechanism_at) }? {
            Some(mechanism) => session.sign_init(&mechanism, key),
            None => {
                session.cancel(true, false, false);
                Ok(())
            }
        }
    })
}

/// Gives a signature by the convention of PKCS#11: a host that has no place for it learns its length alone, and nothing is signed. Everything
/// else ends what was begun, mistakes of the host included.
///
/// # Safety
/// `len` is null or can be read and written, and `at` is null or has as much room as it says.
unsafe fn give_signature(
    session: &Session,
    at: *mut CK_BYTE,
    len: *mut CK_ULONG,
    sign: impl FnOnce() -> Outcome<Vec<u8>>,
) -> Outcome<()> {
    let needed = session.signature_len()?;
    // SAFETY: as the caller says.
    let room = unsafe { read(len) }.inspect_err(|_| session.cancel(true, false, false))?;
    if at.is_null() || usize::try_from(room).is_ok_and(|room| room < needed) {
        // SAFETY: as the caller says.
        unsafe { write(len, long(needed)) }?;
        return if at.is_null() { Ok(()) } else { Err(Refusal(CKR_BUFFER_TOO_SMALL)) };
    }
    let signature = sign().inspect_err(|_| session.cancel(true, false, false))?;
    // SAFETY: as the caller says; there is room for the length that signatures of this key have.
    unsafe { give(&signature, at, len) }
}

/// `C_Sign`.
pub unsafe extern "C" fn C_Sign(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    data_len: CK_ULONG,
    signature: *mut CK_BYTE,
    signature_len: *mut CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's; the data are not looked at where it asks for the length alone.
        let sign = || session.sign(unsafe { bytes(data, data_len, MOST_MESSAGE, CKR_DATA_LEN_RANGE) }?);
        // SAFETY: the host's.
        unsafe { give_signature(&session, signature, signature_len, sign) }
    })
}

/// `C_SignUpdate`.
pub unsafe extern "C" fn C_SignUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, len: CK_ULONG) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        let part = unsafe { bytes(part, len, MOST_MESSAGE, CKR_DATA_LEN_RANGE) };
        // A part that is not taken ends the operation: nobody signs what lacks it.
        session.sign_update(part.inspect_err(|_| session.cancel(true, false, false))?)
    })
}

/// `C_SignFinal`.
pub unsafe extern "C" fn C_SignFinal(
    session: CK_SESSION_HANDLE,
    signature: *mut CK_BYTE,
    signature_len: *mut CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        unsafe { give_signature(&session, signature, signature_len, || session.sign_final()) }
    })
}

/// `C_VerifyInit`. Without a mechanism it ends what was begun.
pub unsafe extern "C" fn C_VerifyInit(
    session: CK_SESSION_HANDLE,
    mechanism_at: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        match unsafe { mechanism(mechanism_at) }? {
            Some(mechanism) => session.verify_init(&mechanism, key),
            None => {
                session.cancel(false, true, false);
                Ok(())
            }
        }
    })
}

/// `C_Verify`: here, under the public key, without asking anybody.
pub unsafe extern "C" fn C_Verify(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    data_len: CK_ULONG,
    signature: *mut CK_BYTE,
    signature_len: CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        let data = unsafe { bytes(data, data_len, MOST_MESSAGE, CKR_DATA_LEN_RANGE) };
        // SAFETY: the host's.
        let signature = unsafe { bytes(signature, signature_len, MOST_SIGNATURE, CKR_SIGNATURE_LEN_RANGE) };
        let end = |_: &Refusal| session.cancel(false, true, false);
        session.verify(data.inspect_err(end)?, signature.inspect_err(end)?)
    })
}

/// `C_VerifyUpdate`.
pub unsafe extern "C" fn C_VerifyUpdate(session: CK_SESSION_HANDLE, part: *mut CK_BYTE, len: CK_ULONG) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        let part = unsafe { bytes(part, len, MOST_MESSAGE, CKR_DATA_LEN_RANGE) };
        session.verify_update(part.inspect_err(|_| session.cancel(false, true, false))?)
    })
}

/// `C_VerifyFinal`.
pub unsafe extern "C" fn C_VerifyFinal(
    session: CK_SESSION_HANDLE,
    signature: *mut CK_BYTE,
    signature_len: CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        let signature = unsafe { bytes(signature, signature_len, MOST_SIGNATURE, CKR_SIGNATURE_LEN_RANGE) };
        session.verify_final(signature.inspect_err(|_| session.cancel(false, true, false))?)
    })
}
