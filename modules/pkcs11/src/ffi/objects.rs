//! Objects: how hosts find, make, read, change and destroy them.

use std::ptr;

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_MECHANISM, CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CK_ULONG, CK_UNAVAILABLE_INFORMATION,
    CKR_ARGUMENTS_BAD, CKR_BUFFER_TOO_SMALL,
};

use super::memory::{call, checked_count, long, mechanism, offset, read, template, write};
use crate::{
    process::module,
    refusal::{Outcome, Refusal},
};

/// `C_CreateObject`: public keys of the group, as objects that go with the session.
pub unsafe extern "C" fn C_CreateObject(
    session: CK_SESSION_HANDLE,
    attributes: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    object: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    call(|| {
        let module = module()?;
        let session = module.session(session)?;
        if object.is_null() {
            return Err(Refusal(CKR_ARGUMENTS_BAD));
        }
        // SAFETY: the host's.
        let attributes = unsafe { template(attributes, count) }?;
        let made = session.create(&attributes, module.handles())?;
        // SAFETY: the host's.
        unsafe { write(object, made) }
    })
}

/// `C_DestroyObject`.
pub unsafe extern "C" fn C_DestroyObject(session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) -> CK_RV {
    call(|| module()?.session(session)?.destroy(object))
}

/// `C_GetObjectSize`.
pub unsafe extern "C" fn C_GetObjectSize(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    size: *mut CK_ULONG,
) -> CK_RV {
    call(|| {
        let found = module()?.session(session)?.object(object)?;
        // SAFETY: the host's.
        unsafe { write(size, long(found.size())) }
    })
}

/// `C_GetAttributeValue`. All attributes are looked at, also behind one that there is not.
pub unsafe extern "C" fn C_GetAttributeValue(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    attributes: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
) -> CK_RV {
    call(|| {
        let object = module()?.session(session)?.object(object)?;
        let mut worst = Ok(());
        for place in 0..checked_count(count)? {
            let at = offset(attributes, place).cast_mut();
            // SAFETY: the host's, and `place` is below their number.
            let CK_ATTRIBUTE { type_, pValue, ulValueLen } = unsafe { read(at) }?;
            let value = object.attribute(type_);
            // SAFETY: the host's: the value is null or has room for so many bytes.
            let (len, outcome) = unsafe { give_value(value, pValue.cast(), ulValueLen) };
            // SAFETY: as when it was read.
            unsafe { write(at, CK_ATTRIBUTE { type_, pValue, ulValueLen: len }) }?;
            worst = worst.and(outcome);
        }
        worst
    })
}

/// Gives the value of one attribute: what its length becomes, and whether it was given.
///
/// # Safety
/// `at` is null or has room for `room` bytes.
unsafe fn give_value(value: Outcome<Vec<u8>>, at: *mut u8, room: CK_ULONG) -> (CK_ULONG, Outcome<()>) {
    let value = match value {
        Ok(value) => value,
        Err(refusal) => return (CK_UNAVAILABLE_INFORMATION, Err(refusal)),
    };
    if at.is_null() {
        return (long(value.len()), Ok(()));
    }
    if usize::try_from(room).is_ok_and(|room| room < value.len()) {
        return (CK_UNAVAILABLE_INFORMATION, Err(Refusal(CKR_BUFFER_TOO_SMALL)));
    }
    // SAFETY: there is room by the caller's word, and the value is ours, so that the two do not overlap.
    unsafe { ptr::copy_nonoverlapping(value.as_ptr(), at, value.len()) };
    (long(value.len()), Ok(()))
}

/// `C_SetAttributeValue`: ids and labels of keys that hosts have made.
pub unsafe extern "C" fn C_SetAttributeValue(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    attributes: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        session.set_attributes(object, &unsafe { template(attributes, count) }?)
    })
}

/// `C_GenerateKeyPair`: a key of the pool.
pub unsafe extern "C" fn C_GenerateKeyPair(
    session: CK_SESSION_HANDLE,
    mechanism_at: *mut CK_MECHANISM,
    public: *mut CK_ATTRIBUTE,
    public_count: CK_ULONG,
    private: *mut CK_ATTRIBUTE,
    private_count: CK_ULONG,
    public_key: *mut CK_OBJECT_HANDLE,
    private_key: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        let mechanism = unsafe { mechanism(mechanism_at) }?.ok_or(Refusal(CKR_ARGUMENTS_BAD))?;
        // A key that nobody could be told of would be lost.
        if public_key.is_null() || private_key.is_null() {
            return Err(Refusal(CKR_ARGUMENTS_BAD));
        }
        // SAFETY: the host's, both.
        let (public, private) = unsafe { (template(public, public_count)?, template(private, private_count)?) };
        let (made_public, made_private) = session.generate(&mechanism, &public, &private)?;
        // SAFETY: the host's.
        unsafe { write(public_key, made_public) }?;
        // SAFETY: the host's.
        unsafe { write(private_key, made_private) }
    })
}

/// `C_FindObjectsInit`.
pub unsafe extern "C" fn C_FindObjectsInit(
    session: CK_SESSION_HANDLE,
    attributes: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        // SAFETY: the host's.
        session.find_init(&unsafe { template(attributes, count) }?)
    })
}

/// `C_FindObjects`.
pub unsafe extern "C" fn C_FindObjects(
    session: CK_SESSION_HANDLE,
    objects: *mut CK_OBJECT_HANDLE,
    most: CK_ULONG,
    count: *mut CK_ULONG,
) -> CK_RV {
    call(|| {
        let session = module()?.session(session)?;
        if count.is_null() || objects.is_null() {
            return Err(Refusal(CKR_ARGUMENTS_BAD));
        }
        let found = session.find_next(usize::try_from(most).unwrap_or(usize::MAX))?;
        for (place, handle) in found.iter().enumerate() {
            // SAFETY: the host's, and there are no more than it has places for.
            unsafe { write(offset(objects, place).cast_mut(), *handle) }?;
        }
        // SAFETY: the host's.
        unsafe { write(count, long(found.len())) }
    })
}

/// `C_FindObjectsFinal`.
pub unsafe extern "C" fn C_FindObjectsFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    call(|| module()?.session(session)?.find_final())
}
