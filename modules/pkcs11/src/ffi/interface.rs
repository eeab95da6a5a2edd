//! The tables of functions, which is where hosts begin: PKCS#11 2.40, 3.0, and the functions of them that this module does not have.
//!
//! Those that it has are in the files beside this one. The others answer `CKR_FUNCTION_NOT_SUPPORTED`, as the standard wants it, and touch
//! nothing of the host's.

use std::{os::raw::c_void, ptr};

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_BYTE, CK_FLAGS, CK_FUNCTION_LIST, CK_FUNCTION_LIST_3_0, CK_INTERFACE, CK_MECHANISM,
    CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CK_SLOT_ID, CK_ULONG, CK_UTF8CHAR, CK_VERSION, CKR_ACTION_PROHIBITED,
    CKR_FUNCTION_FAILED, CKR_FUNCTION_NOT_PARALLEL, CKR_FUNCTION_NOT_SUPPORTED, CKR_RANDOM_SEED_NOT_SUPPORTED,
};

use super::{
    general::{C_Finalize, C_GenerateRandom, C_GetInfo, C_Initialize},
    memory::{call, give, offset, read, write},
    objects::{
        C_CreateObject, C_DestroyObject, C_FindObjects, C_FindObjectsFinal, C_FindObjectsInit, C_GenerateKeyPair,
        C_GetAttributeValue, C_GetObjectSize, C_SetAttributeValue,
    },
    sessions::{
        C_CloseAllSessions, C_CloseSession, C_GetSessionInfo, C_Login, C_Logout, C_OpenSession, C_SessionCancel,
    },
    signatures::{
        C_Sign, C_SignFinal, C_SignInit, C_SignUpdate, C_Verify, C_VerifyFinal, C_VerifyInit, C_VerifyUpdate,
    },
    slots::{C_GetMechanismInfo, C_GetMechanismList, C_GetSlotInfo, C_GetSlotList, C_GetTokenInfo},
};
use crate::refusal::Refusal;

/// Functions that answer the same to everybody.
macro_rules! answers {
    ($($code:ident { $($name:ident($($kind:ty),*);)+ })+) => {
        $($(extern "C" fn $name($(_: $kind),*) -> CK_RV {
            $code
        })+)+
    };
}

type Session = CK_SESSION_HANDLE;
type Handle = CK_OBJECT_HANDLE;
type Bytes = *mut CK_BYTE;
type Len = *mut CK_ULONG;
type Text = *mut CK_UTF8CHAR;
type Anything = *mut c_void;
type Template = *mut CK_ATTRIBUTE;

answers! {
    CKR_FUNCTION_NOT_SUPPORTED {
        C_InitToken(CK_SLOT_ID, Text, CK_ULONG, Text);
        C_InitPIN(Session, Text, CK_ULONG);
        C_SetPIN(Session, Text, CK_ULONG, Text, CK_ULONG);
        C_GetOperationState(Session, Bytes, Len);
        C_SetOperationState(Session, Bytes, CK_ULONG, Handle, Handle);
        C_EncryptInit(Session, *mut CK_MECHANISM, Handle);
        C_Encrypt(Session, Bytes, CK_ULONG, Bytes, Len);
        C_EncryptUpdate(Session, Bytes, CK_ULONG, Bytes, Len);
        C_EncryptFinal(Session, Bytes, Len);
        C_DecryptInit(Session, *mut CK_MECHANISM, Handle);
        C_Decrypt(Session, Bytes, CK_ULONG, Bytes, Len);
        C_DecryptUpdate(Session, Bytes, CK_ULONG, Bytes, Len);
        C_DecryptFinal(Session, Bytes, Len);
        C_DigestInit(Session, *mut CK_MECHANISM);
        C_Digest(Session, Bytes, CK_ULONG, Bytes, Len);
        C_DigestUpdate(Session, Bytes, CK_ULONG);
        C_DigestKey(Session, Handle);
        C_DigestFinal(Session, Bytes, Len);
        C_SignRecoverInit(Session, *mut CK_MECHANISM, Handle);
        C_SignRecover(Session, Bytes, CK_ULONG, Bytes, Len);
        C_VerifyRecoverInit(Session, *mut CK_MECHANISM, Handle);
        C_VerifyRecover(Session, Bytes, CK_ULONG, Bytes, Len);
        C_DigestEncryptUpdate(Session, Bytes, CK_ULONG, Bytes, Len);
        C_DecryptDigestUpdate(Session, Bytes, CK_ULONG, Bytes, Len);
        C_SignEncryptUpdate(Session, Bytes, CK_ULONG, Bytes, Len);
        C_DecryptVerifyUpdate(Session, Bytes, CK_ULONG, Bytes, Len);
        C_GenerateKey(Session, *mut CK_MECHANISM, Template, CK_ULONG, *mut Handle);
        C_WrapKey(Session, *mut CK_MECHANISM, Handle, Handle, Bytes, Len);
        C_UnwrapKey(Session, *mut CK_MECHANISM, Handle, Bytes, CK_ULONG, Template, CK_ULONG, *mut Handle);
        C_DeriveKey(Session, *mut CK_MECHANISM, Handle, Template, CK_ULONG, *mut Handle);
        C_WaitForSlotEvent(CK_FLAGS, *mut CK_SLOT_ID, Anything);
        C_LoginUser(Session, cryptoki_sys::CK_USER_TYPE, Text, CK_ULONG, Text, CK_ULONG);
        C_MessageEncryptInit(Session, *mut CK_MECHANISM, Handle);
        C_EncryptMessage(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, CK_ULONG, Bytes, Len);
        C_EncryptMessageBegin(Session, Anything, CK_ULONG, Bytes, CK_ULONG);
        C_EncryptMessageNext(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, Len, CK_FLAGS);
        C_MessageEncryptFinal(Session);
        C_MessageDecryptInit(Session, *mut CK_MECHANISM, Handle);
        C_DecryptMessage(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, CK_ULONG, Bytes, Len);
        C_DecryptMessageBegin(Session, Anything, CK_ULONG, Bytes, CK_ULONG);
        C_DecryptMessageNext(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, Len, CK_FLAGS);
        C_MessageDecryptFinal(Session);
        C_MessageSignInit(Session, *mut CK_MECHANISM, Handle);
        C_SignMessage(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, Len);
        C_SignMessageBegin(Session, Anything, CK_ULONG);
        C_SignMessageNext(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, Len);
        C_MessageSignFinal(Session);
        C_MessageVerifyInit(Session, *mut CK_MECHANISM, Handle);
        C_VerifyMessage(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, CK_ULONG);
        C_VerifyMessageBegin(Session, Anything, CK_ULONG);
        C_VerifyMessageNext(Session, Anything, CK_ULONG, Bytes, CK_ULONG, Bytes, CK_ULONG);
        C_MessageVerifyFinal(Session);
    }
    CKR_ACTION_PROHIBITED {
        C_CopyObject(Session, Handle, Template, CK_ULONG, *mut Handle);
    }
    CKR_RANDOM_SEED_NOT_SUPPORTED {
        C_SeedRandom(Session, Bytes, CK_ULONG);
    }
    CKR_FUNCTION_NOT_PARALLEL {
        C_GetFunctionStatus(Session);
        C_CancelFunction(Session);
    }
}

/// A table of the functions of version 2.40, and these others.
macro_rules! table {
    ($kind:ident, $major:literal, $minor:literal $(, $($own:ident)+; $($other:ident)+)?) => {
        $kind {
            version: CK_VERSION { major: $major, minor: $minor },
            C_Initialize: Some(C_Initialize),
            C_Finalize: Some(C_Finalize),
            C_GetInfo: Some(C_GetInfo),
            C_GetFunctionList: Some(C_GetFunctionList),
            C_GetSlotList: Some(C_GetSlotList),
            C_GetSlotInfo: Some(C_GetSlotInfo),
            C_GetTokenInfo: Some(C_GetTokenInfo),
            C_GetMechanismList: Some(C_GetMechanismList),
            C_GetMechanismInfo: Some(C_GetMechanismInfo),
            C_InitToken: Some(C_InitToken),
            C_InitPIN: Some(C_InitPIN),
            C_SetPIN: Some(C_SetPIN),
            C_OpenSession: Some(C_OpenSession),
            C_CloseSession: Some(C_CloseSession),
            C_CloseAllSessions: Some(C_CloseAllSessions),
            C_GetSessionInfo: Some(C_GetSessionInfo),
            C_GetOperationState: Some(C_GetOperationState),
            C_SetOperationState: Some(C_SetOperationState),
            C_Login: Some(C_Login),
            C_Logout: Some(C_Logout),
            C_CreateObject: Some(C_CreateObject),
            C_CopyObject: Some(C_CopyObject),
            C_DestroyObject: Some(C_DestroyObject),
            C_GetObjectSize: Some(C_GetObjectSize),
            C_GetAttributeValue: Some(C_GetAttributeValue),
            C_SetAttributeValue: Some(C_SetAttributeValue),
            C_FindObjectsInit: Some(C_FindObjectsInit),
            C_FindObjects: Some(C_FindObjects),
            C_FindObjectsFinal: Some(C_FindObjectsFinal),
            C_EncryptInit: Some(C_EncryptInit),
            C_Encrypt: Some(C_Encrypt),
            C_EncryptUpdate: Some(C_EncryptUpdate),
            C_EncryptFinal: Some(C_EncryptFinal),
            C_DecryptInit: Some(C_DecryptInit),
            C_Decrypt: Some(C_Decrypt),
            C_DecryptUpdate: Some(C_DecryptUpdate),
            C_DecryptFinal: Some(C_DecryptFinal),
            C_DigestInit: Some(C_DigestInit),
            C_Digest: Some(C_Digest),
            C_DigestUpdate: Some(C_DigestUpdate),
            C_DigestKey: Some(C_DigestKey),
            C_DigestFinal: Some(C_DigestFinal),
            C_SignInit: Some(C_SignInit),
            C_Sign: Some(C_Sign),
            C_SignUpdate: Some(C_SignUpdate),
            C_SignFinal: Some(C_SignFinal),
            C_SignRecoverInit: Some(C_SignRecoverInit),
            C_SignRecover: Some(C_SignRecover),
            C_VerifyInit: Some(C_VerifyInit),
            C_Verify: Some(C_Verify),
            C_VerifyUpdate: Some(C_VerifyUpdate),
            C_VerifyFinal: Some(C_VerifyFinal),
            C_VerifyRecoverInit: Some(C_VerifyRecoverInit),
            C_VerifyRecover: Some(C_VerifyRecover),
            C_DigestEncryptUpdate: Some(C_DigestEncryptUpdate),
            C_DecryptDigestUpdate: Some(C_DecryptDigestUpdate),
            C_SignEncryptUpdate: Some(C_SignEncryptUpdate),
            C_DecryptVerifyUpdate: Some(C_DecryptVerifyUpdate),
            C_GenerateKey: Some(C_GenerateKey),
            C_GenerateKeyPair: Some(C_GenerateKeyPair),
            C_WrapKey: Some(C_WrapKey),
            C_UnwrapKey: Some(C_UnwrapKey),
            C_DeriveKey: Some(C_DeriveKey),
            C_SeedRandom: Some(C_SeedRandom),
            C_GenerateRandom: Some(C_GenerateRandom),
            C_GetFunctionStatus: Some(C_GetFunctionStatus),
            C_CancelFunction: Some(C_CancelFunction),
            C_WaitForSlotEvent: Some(C_WaitForSlotEvent),
            $($($own: Some($own),)+ $($other: Some($other),)+)?
        }
    };
}

/// The functions of version 2.40.
static FUNCTIONS: CK_FUNCTION_LIST = table!(CK_FUNCTION_LIST, 2, 40);

/// The functions of version 3.0.
static FUNCTIONS_3_0: CK_FUNCTION_LIST_3_0 = table!(
    CK_FUNCTION_LIST_3_0, 3, 0,
    C_GetInterfaceList C_GetInterface C_SessionCancel;
    C_LoginUser C_MessageEncryptInit C_EncryptMessage C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal
    C_MessageDecryptInit C_DecryptMessage C_DecryptMessageBegin C_DecryptMessageNext C_MessageDecryptFinal
    C_MessageSignInit C_SignMessage C_SignMessageBegin C_SignMessageNext C_MessageSignFinal
    C_MessageVerifyInit C_VerifyMessage C_VerifyMessageBegin C_VerifyMessageNext C_MessageVerifyFinal
);

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
