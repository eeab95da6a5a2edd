//! The tables of functions that hosts call: PKCS#11 2.40, 3.0, and the functions of them that this module does not have.
//!
//! Those that it has are in [`ffi`](crate::ffi). The others answer `CKR_FUNCTION_NOT_SUPPORTED`, as the standard wants it, and touch
//! nothing of the host's.

#![allow(non_snake_case, reason = "the names of the standard")]

use std::os::raw::c_void;

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_BYTE, CK_FLAGS, CK_FUNCTION_LIST, CK_FUNCTION_LIST_3_0, CK_MECHANISM, CK_OBJECT_HANDLE, CK_RV,
    CK_SESSION_HANDLE, CK_SLOT_ID, CK_ULONG, CK_UTF8CHAR, CK_VERSION, CKR_ACTION_PROHIBITED, CKR_FUNCTION_NOT_PARALLEL,
    CKR_FUNCTION_NOT_SUPPORTED, CKR_RANDOM_SEED_NOT_SUPPORTED,
};

use crate::ffi;

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
            C_Initialize: Some(ffi::C_Initialize),
            C_Finalize: Some(ffi::C_Finalize),
            C_GetInfo: Some(ffi::C_GetInfo),
            C_GetFunctionList: Some(ffi::C_GetFunctionList),
            C_GetSlotList: Some(ffi::C_GetSlotList),
            C_GetSlotInfo: Some(ffi::C_GetSlotInfo),
            C_GetTokenInfo: Some(ffi::C_GetTokenInfo),
            C_GetMechanismList: Some(ffi::C_GetMechanismList),
            C_GetMechanismInfo: Some(ffi::C_GetMechanismInfo),
            C_InitToken: Some(C_InitToken),
            C_InitPIN: Some(C_InitPIN),
            C_SetPIN: Some(C_SetPIN),
            C_OpenSession: Some(ffi::C_OpenSession),
            C_CloseSession: Some(ffi::C_CloseSession),
            C_CloseAllSessions: Some(ffi::C_CloseAllSessions),
            C_GetSessionInfo: Some(ffi::C_GetSessionInfo),
            C_GetOperationState: Some(C_GetOperationState),
            C_SetOperationState: Some(C_SetOperationState),
            C_Login: Some(ffi::C_Login),
            C_Logout: Some(ffi::C_Logout),
            C_CreateObject: Some(ffi::C_CreateObject),
            C_CopyObject: Some(C_CopyObject),
            C_DestroyObject: Some(ffi::C_DestroyObject),
            C_GetObjectSize: Some(ffi::C_GetObjectSize),
            C_GetAttributeValue: Some(ffi::C_GetAttributeValue),
            C_SetAttributeValue: Some(ffi::C_SetAttributeValue),
            C_FindObjectsInit: Some(ffi::C_FindObjectsInit),
            C_FindObjects: Some(ffi::C_FindObjects),
            C_FindObjectsFinal: Some(ffi::C_FindObjectsFinal),
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
            C_SignInit: Some(ffi::C_SignInit),
            C_Sign: Some(ffi::C_Sign),
            C_SignUpdate: Some(ffi::C_SignUpdate),
            C_SignFinal: Some(ffi::C_SignFinal),
            C_SignRecoverInit: Some(C_SignRecoverInit),
            C_SignRecover: Some(C_SignRecover),
            C_VerifyInit: Some(ffi::C_VerifyInit),
            C_Verify: Some(ffi::C_Verify),
            C_VerifyUpdate: Some(ffi::C_VerifyUpdate),
            C_VerifyFinal: Some(ffi::C_VerifyFinal),
            C_VerifyRecoverInit: Some(C_VerifyRecoverInit),
            C_VerifyRecover: Some(C_VerifyRecover),
            C_DigestEncryptUpdate: Some(C_DigestEncryptUpdate),
            C_DecryptDigestUpdate: Some(C_DecryptDigestUpdate),
            C_SignEncryptUpdate: Some(C_SignEncryptUpdate),
            C_DecryptVerifyUpdate: Some(C_DecryptVerifyUpdate),
            C_GenerateKey: Some(C_GenerateKey),
            C_GenerateKeyPair: Some(ffi::C_GenerateKeyPair),
            C_WrapKey: Some(C_WrapKey),
            C_UnwrapKey: Some(C_UnwrapKey),
            C_DeriveKey: Some(C_DeriveKey),
            C_SeedRandom: Some(C_SeedRandom),
            C_GenerateRandom: Some(ffi::C_GenerateRandom),
            C_GetFunctionStatus: Some(C_GetFunctionStatus),
            C_CancelFunction: Some(C_CancelFunction),
            C_WaitForSlotEvent: Some(C_WaitForSlotEvent),
            $($($own: Some(ffi::$own),)+ $($other: Some($other),)+)?
        }
    };
}

/// The functions of version 2.40.
pub(crate) static FUNCTIONS: CK_FUNCTION_LIST = table!(CK_FUNCTION_LIST, 2, 40);

/// The functions of version 3.0.
pub(crate) static FUNCTIONS_3_0: CK_FUNCTION_LIST_3_0 = table!(
    CK_FUNCTION_LIST_3_0, 3, 0,
    C_GetInterfaceList C_GetInterface C_SessionCancel;
    C_LoginUser C_MessageEncryptInit C_EncryptMessage C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal
    C_MessageDecryptInit C_DecryptMessage C_DecryptMessageBegin C_DecryptMessageNext C_MessageDecryptFinal
    C_MessageSignInit C_SignMessage C_SignMessageBegin C_SignMessageNext C_MessageSignFinal
    C_MessageVerifyInit C_VerifyMessage C_VerifyMessageBegin C_VerifyMessageNext C_MessageVerifyFinal
);
