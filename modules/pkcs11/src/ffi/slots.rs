//! Slots and their tokens.

use cryptoki_sys::{
    CK_BBOOL, CK_MECHANISM_INFO, CK_MECHANISM_TYPE, CK_RV, CK_SLOT_ID, CK_SLOT_INFO, CK_TOKEN_INFO, CK_ULONG,
    CK_UNAVAILABLE_INFORMATION, CK_VERSION, CKF_TOKEN_PRESENT,
};

use super::{
    general::{MANUFACTURER, VERSION},
    memory::{call, give, long, padded, write},
    sessions::MOST_PIN,
};
use crate::process::module;

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
