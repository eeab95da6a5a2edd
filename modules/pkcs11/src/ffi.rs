//! The border to C: what hosts call. All `unsafe` of the module is in this file.
//!
//! Each function copies what the host gives into types of Rust, calls what is beneath, and writes what comes back. What is beneath
//! knows no pointer.
//!
//! - A pointer that is null where the standard wants one is `CKR_ARGUMENTS_BAD`.
//! - A length is believed, as there is no other way in C, up to a bound: beyond it the call is refused before anything is read.
//! - Memory of the host is read and written without a demand on its alignment.
//! - No panic crosses the border: it becomes `CKR_GENERAL_ERROR`.
//!
//! # Safety
//! The functions are `unsafe`, since C gives them pointers. For all of them the host must see to what PKCS#11 demands of it: each
//! pointer is null or points to as many elements as the argument beside it says, for as long as the call lasts.

#![allow(unsafe_code, reason = "the border to C")]
#![allow(non_snake_case, reason = "the names of the standard")]
#![allow(clippy::missing_safety_doc, reason = "the same for all functions: the module's documentation has it")]

use std::{
    os::raw::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
};

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_BBOOL, CK_BYTE, CK_C_INITIALIZE_ARGS, CK_FLAGS, CK_FUNCTION_LIST, CK_INFO, CK_INTERFACE,
    CK_MECHANISM, CK_MECHANISM_INFO, CK_MECHANISM_TYPE, CK_NOTIFY, CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE,
    CK_SESSION_INFO, CK_SLOT_ID, CK_SLOT_INFO, CK_TOKEN_INFO, CK_ULONG, CK_UNAVAILABLE_INFORMATION, CK_USER_TYPE,
    CK_UTF8CHAR, CK_VERSION, CKF_FIND_OBJECTS, CKF_RW_SESSION, CKF_SERIAL_SESSION, CKF_SIGN, CKF_TOKEN_PRESENT,
    CKF_VERIFY, CKR_ARGUMENTS_BAD, CKR_BUFFER_TOO_SMALL, CKR_DATA_LEN_RANGE, CKR_FUNCTION_FAILED, CKR_GENERAL_ERROR,
    CKR_OK, CKR_PIN_LEN_RANGE, CKR_SESSION_PARALLEL_NOT_SUPPORTED, CKR_SIGNATURE_LEN_RANGE, CKR_USER_TYPE_INVALID,
    CKU_USER,
};

use crate::{
    interface::{FUNCTIONS, FUNCTIONS_3_0},
    mechanisms::Mechanism,
    objects::Attribute,
    process::{self, module},
    refusal::{Outcome, Refusal},
    sessions::{MOST_MESSAGE, Session},
};

/// The most attributes in a template.
const MOST_ATTRIBUTES: usize = 256;
/// The longest attribute, and the longest parameters of a mechanism, in bytes.
const MOST_ATTRIBUTE: usize = 64 << 10;
/// The longest PIN in bytes.
const MOST_PIN: usize = 1024;
/// The longest signature in bytes that is verified.
const MOST_SIGNATURE: usize = 4096;
/// The most random bytes at once.
const MOST_RANDOM: usize = 16 << 20;

/// Runs a call.
fn call(work: impl FnOnce() -> Outcome<()>) -> CK_RV {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => CKR_OK,
        Ok(Err(Refusal(code))) => code,
        Err(_) => CKR_GENERAL_ERROR,
    }
}

/// Copies a structure of the host's.
///
/// # Safety
/// `at` is null or can be read.
unsafe fn read<T: Copy>(at: *const T) -> Outcome<T> {
    if at.is_null() {
        return Err(Refusal(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: the caller says that it can be read; the types that are read here have no values that bytes could not have.
    Ok(unsafe { at.read_unaligned() })
}

/// Writes a structure of the host's.
///
/// # Safety
/// `at` is null or can be written.
unsafe fn write<T>(at: *mut T, value: T) -> Outcome<()> {
    if at.is_null() {
        return Err(Refusal(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: the caller says that it can be written.
    unsafe { at.write_unaligned(value) };
    Ok(())
}

/// Bytes of the host's, `most` at most; `too_long` if there are more. None may be null.
///
/// # Safety
/// `at` is null or has `len` bytes that nobody changes while the slice is used.
unsafe fn bytes<'a>(at: *const CK_BYTE, len: CK_ULONG, most: usize, too_long: CK_RV) -> Outcome<&'a [u8]> {
    let len = usize::try_from(len).ok().filter(|len| *len <= most).ok_or(Refusal(too_long))?;
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Refusal(CKR_ARGUMENTS_BAD)),
        // SAFETY: the caller says that there are so many bytes, and that nobody changes them.
        (false, _) => Ok(unsafe { slice::from_raw_parts(at, len) }),
    }
}

/// Copies the attributes of a template.
///
/// # Safety
/// `at` is null or has `count` attributes, each of whose values is null or has its length in bytes.
unsafe fn template(at: *const CK_ATTRIBUTE, count: CK_ULONG) -> Outcome<Vec<Attribute>> {
    let mut attributes = Vec::new();
    for place in 0..checked_count(count)? {
        // SAFETY: `place` is below the number of attributes that the caller vouches for.
        let CK_ATTRIBUTE { type_, pValue, ulValueLen } = unsafe { read(offset(at, place)) }?;
        // SAFETY: the caller vouches for the value's length, too.
        let value = unsafe { bytes(pValue.cast(), ulValueLen, MOST_ATTRIBUTE, CKR_ARGUMENTS_BAD) }?.to_vec();
        attributes.push(Attribute { kind: type_, value });
    }
    Ok(attributes)
}

fn checked_count(count: CK_ULONG) -> Outcome<usize> {
    usize::try_from(count).ok().filter(|count| *count <= MOST_ATTRIBUTES).ok_or(Refusal(CKR_ARGUMENTS_BAD))
}

/// The element of an array at this place; null for a null array.
fn offset<T>(at: *const T, place: usize) -> *const T {
    if at.is_null() { at } else { at.wrapping_add(place) }
}

/// Copies a mechanism; `None` if the host gives none.
///
/// # Safety
/// `at` is null or a mechanism, whose parameters are null or have their length in bytes.
unsafe fn mechanism(at: *const CK_MECHANISM) -> Outcome<Option<Mechanism>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says that it can be read.
    let CK_MECHANISM { mechanism: kind, pParameter, ulParameterLen } = unsafe { read(at) }?;
    // SAFETY: the caller vouches for the length of the parameters.
    let parameters = unsafe { bytes(pParameter.cast(), ulParameterLen, MOST_ATTRIBUTE, CKR_ARGUMENTS_BAD) }?.to_vec();
    Ok(Some(Mechanism { kind, parameters }))
}

fn long(number: usize) -> CK_ULONG {
    CK_ULONG::try_from(number).unwrap_or(CK_UNAVAILABLE_INFORMATION)
}

/// Gives a list by the convention of PKCS#11 (2.40 base, section 5.2): its length alone if there is no place, and an error if the place
/// is too small.
///
/// # Safety
/// `count` is null or can be read and written, and `at` is null or has as many places as it says.
unsafe fn give<T: Copy>(items: &[T], at: *mut T, count: *mut CK_ULONG) -> Outcome<()> {
    // SAFETY: as the caller says.
    let room = unsafe { read(count) }?;
    // SAFETY: as the caller says.
    unsafe { write(count, long(items.len())) }?;
    if at.is_null() {
        return Ok(());
    }
    if usize::try_from(room).is_ok_and(|room| room < items.len()) {
        return Err(Refusal(CKR_BUFFER_TOO_SMALL));
    }
    // SAFETY: there is room for all items, by the caller's word; they are ours, so that the two do not overlap. Bytes have no
    // alignment, as whatever the host calls an array of T may have none.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr().cast::<u8>(), at.cast::<u8>(), size_of_val(items)) };
    Ok(())
}

/// A text in a field of fixed length, padded with blanks.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    field.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    field
}

const MANUFACTURER: &str = "Thetacrypt";
const VERSION: CK_VERSION = CK_VERSION { major: 0, minor: 1 };

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

/// `C_GetFunctionList`: where hosts begin.
// SAFETY: hosts look for this name, and nothing else in this program has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetFunctionList(list: *mut *mut CK_FUNCTION_LIST) -> CK_RV {
    // SAFETY: the host's. The table lives as long as the module, and hosts only read it.
    call(|| unsafe { write(list, ptr::from_ref(&FUNCTIONS).cast_mut()) })
}

/// An interface that is never changed.
struct Interface(CK_INTERFACE);

// SAFETY: its pointers lead to constants.
unsafe impl Sync for Interface {}

const fn interface(functions: *const c_void) -> Interface {
    let name = c"PKCS 11".as_ptr().cast_mut().cast();
    Interface(CK_INTERFACE { pInterfaceName: name, pFunctionList: functions.cast_mut(), flags: 0 })
}

/// The newest comes first: it is what hosts get that name none.
static INTERFACES: [Interface; 2] =
    [interface((&raw const FUNCTIONS_3_0).cast()), interface((&raw const FUNCTIONS).cast())];

/// `C_GetInterfaceList` of PKCS#11 3.0.
// SAFETY: hosts look for this name, and nothing else in this program has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetInterfaceList(list: *mut CK_INTERFACE, count: *mut CK_ULONG) -> CK_RV {
    // SAFETY: the host's.
    call(|| unsafe { give(&INTERFACES.each_ref().map(|Interface(interface)| *interface), list, count) })
}

/// `C_GetInterface` of PKCS#11 3.0.
// SAFETY: hosts look for this name, and nothing else in this program has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetInterface(
    name: *mut CK_UTF8CHAR,
    version: *mut CK_VERSION,
    interface: *mut *mut CK_INTERFACE,
    flags: CK_FLAGS,
) -> CK_RV {
    call(|| {
        const NAME: &[u8] = b"PKCS 11\0";
        // SAFETY: the host's: null or a text that ends with a zero. Nothing is read behind the first byte that differs.
        let named = name.is_null()
            || (0..NAME.len()).all(|place| unsafe { read(offset(name, place)) }.ok().as_ref() == NAME.get(place));
        // SAFETY: the host's: null or a version.
        let wanted = unsafe { read(version) }.ok().map(|CK_VERSION { major, minor }| (major, minor));
        let places = [(3, 0), (2, 40)].into_iter().zip(&INTERFACES);
        let mut apt = places.filter(|(offered, _)| wanted.is_none_or(|wanted| wanted == *offered));
        match apt.next().filter(|_| named && flags == 0) {
            // SAFETY: the host's. Interfaces live as long as the module.
            Some((_, Interface(found))) => unsafe { write(interface, ptr::from_ref(found).cast_mut()) },
            None => Err(Refusal(CKR_FUNCTION_FAILED)),
        }
    })
}

/// `C_GetSlotList`: a slot for each token of the configuration.
pub unsafe extern "C" fn C_GetSlotList(with_token: CK_BBOOL, list: *mut CK_SLOT_ID, count: *mut CK_ULONG) -> CK_RV {
    // SAFETY: the host's.
    call(|| unsafe { give(&module()?.slots(with_token != 0), list, count) })
}

/// `C_GetSlotInfo`.
pub unsafe extern "C" fn C_GetSlotInfo(slot: CK_SLOT_ID, info: *mut CK_SLOT_INFO) -> CK_RV {
    call(|| {
        let module = module()?;
        let token = module.token(slot)?;
        let told = CK_SLOT_INFO {
            slotDescription: padded(&format!("Group {}", token.label())),
            manufacturerID: padded(MANUFACTURER),
            flags: if token.is_present() { CKF_TOKEN_PRESENT } else { 0 },
            hardwareVersion: CK_VERSION { major: 0, minor: 0 },
            firmwareVersion: VERSION,
        };
        // SAFETY: the host's.
        unsafe { write(info, told) }
    })
}

/// `C_GetTokenInfo`.
pub unsafe extern "C" fn C_GetTokenInfo(slot: CK_SLOT_ID, info: *mut CK_TOKEN_INFO) -> CK_RV {
    call(|| {
        let module = module()?;
        let token = module.token(slot)?;
        token.check_present()?;
        let (sessions, writable) = module.sessions().count(slot);
        let told = CK_TOKEN_INFO {
            label: padded(token.label()),
            manufacturerID: padded(MANUFACTURER),
            model: padded("key group"),
            serialNumber: padded(&token.serial()),
            flags: token.flags(),
            ulMaxSessionCount: 0,
            ulSessionCount: sessions,
            ulMaxRwSessionCount: 0,
            ulRwSessionCount: writable,
            ulMaxPinLen: long(MOST_PIN),
            ulMinPinLen: 0,
            ulTotalPublicMemory: CK_UNAVAILABLE_INFORMATION,
            ulFreePublicMemory: CK_UNAVAILABLE_INFORMATION,
            ulTotalPrivateMemory: CK_UNAVAILABLE_INFORMATION,
            ulFreePrivateMemory: CK_UNAVAILABLE_INFORMATION,
            hardwareVersion: CK_VERSION { major: 0, minor: 0 },
            firmwareVersion: VERSION,
            utcTime: padded(""),
        };
        // SAFETY: the host's.
        unsafe { write(info, told) }
    })
}

/// `C_GetMechanismList`.
pub unsafe extern "C" fn C_GetMechanismList(
    slot: CK_SLOT_ID,
    list: *mut CK_MECHANISM_TYPE,
    count: *mut CK_ULONG,
) -> CK_RV {
    call(|| {
        let module = module()?;
        let token = module.token(slot)?;
        token.check_present()?;
        // SAFETY: the host's.
        unsafe { give(&token.mechanisms(), list, count) }
    })
}

/// `C_GetMechanismInfo`.
pub unsafe extern "C" fn C_GetMechanismInfo(
    slot: CK_SLOT_ID,
    kind: CK_MECHANISM_TYPE,
    info: *mut CK_MECHANISM_INFO,
) -> CK_RV {
    call(|| {
        let module = module()?;
        let token = module.token(slot)?;
        token.check_present()?;
        let told = token.mechanism_info(kind)?;
        // SAFETY: the host's.
        unsafe { write(info, told) }
    })
}

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
    call(|| module()?.close_session(session))
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
        let session = module()?.session(session)?;
        if user != CKU_USER {
            return Err(Refusal(CKR_USER_TYPE_INVALID));
        }
        // SAFETY: the host's. The PIN is not copied.
        let pin = unsafe { bytes(pin, len, MOST_PIN, CKR_PIN_LEN_RANGE) }?;
        session.token().log_in(pin)
    })
}

/// `C_Logout`.
pub unsafe extern "C" fn C_Logout(session: CK_SESSION_HANDLE) -> CK_RV {
    call(|| module()?.session(session)?.token().check_log_out())
}

/// `C_CreateObject`: public keys of the group, as objects of one session.
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
