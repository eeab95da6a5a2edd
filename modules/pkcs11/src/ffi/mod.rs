//! The border to C: what hosts call. All `unsafe` of the module is in this folder.
//!
//! Each function copies what the host gives into types of Rust, calls what is beneath, and writes what comes back. What is beneath
//! knows no pointer.
//!
//! - `memory` is what touches the host's; the other files say what is read and written there for whom.
//! - `interface` has the tables of functions, by which hosts find the others.
//! - `allocator` is about memory that no host sees; `forks` and `secure` about the process.
//!
//! What all of them keep to:
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

mod allocator;
pub(crate) mod forks;
mod general;
mod interface;
mod memory;
mod objects;
mod secure;
mod sessions;
mod signatures;
mod slots;

pub(crate) use self::secure::is_secure;
pub use self::{
    general::{C_Finalize, C_GenerateRandom, C_GetInfo, C_Initialize},
    interface::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList},
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
