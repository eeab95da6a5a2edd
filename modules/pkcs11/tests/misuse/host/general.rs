//! The beginning, the end, what the module is, and the functions that it does not have.

use std::{os::raw::c_void, ptr};

use cryptoki_sys::{
    CK_BYTE, CK_C_INITIALIZE_ARGS, CK_FUNCTION_LIST, CK_INFO, CK_INTERFACE, CK_RV, CK_ULONG, CK_VERSION,
    CKR_ACTION_PROHIBITED, CKR_ARGUMENTS_BAD, CKR_BUFFER_TOO_SMALL, CKR_CRYPTOKI_ALREADY_INITIALIZED,
    CKR_FUNCTION_FAILED, CKR_FUNCTION_NOT_PARALLEL, CKR_FUNCTION_NOT_SUPPORTED, CKR_OK, CKR_RANDOM_SEED_NOT_SUPPORTED,
};

use super::{
    Host,
    draw::ABSURD,
    memory::{Guarded, Named, long},
};

unsafe extern "C" fn create(_: *mut *mut c_void) -> CK_RV {
    CKR_OK
}

unsafe extern "C" fn lock(_: *mut c_void) -> CK_RV {
    CKR_OK
}

type Lock = unsafe extern "C" fn(*mut c_void) -> CK_RV;

impl Host<'_> {
    /// `C_Initialize`, with locks of the host's or some of them.
    pub(super) fn initialise(&mut self) {
        let (form, flags) = (self.draw.below(8), CK_ULONG::from(self.draw.byte()));
        let own_lock = |place: usize| if form == 2 || (form == 3 && place < 2) { Some(lock as Lock) } else { None };
        let is_reserved = form == 4;
        let mut own = Guarded::of_value(CK_C_INITIALIZE_ARGS {
            CreateMutex: if form == 2 || form == 3 { Some(create) } else { None },
            DestroyMutex: own_lock(1),
            LockMutex: own_lock(2),
            UnlockMutex: own_lock(3),
            flags,
            pReserved: if is_reserved { ptr::without_provenance_mut(8) } else { ptr::null_mut() },
        });
        let rv = call!(self, C_Initialize(own.at_or_null(form == 0)));
        own.check(own.len());
        let expected = match form {
            3 | 4 => CKR_ARGUMENTS_BAD,
            _ if self.model.is_initialised => CKR_CRYPTOKI_ALREADY_INITIALIZED,
            _ => CKR_OK,
        };
        assert_eq!(rv, expected, "C_Initialize of form {form}");
        self.model.is_initialised |= rv == CKR_OK;
    }

    /// `C_Finalize`.
    pub(super) fn finalise(&mut self) {
        if self.draw.rarely(3) {
            let rv = call!(self, C_Finalize(ptr::without_provenance_mut(8)));
            assert_eq!(rv, CKR_ARGUMENTS_BAD, "C_Finalize with something that is reserved");
            return;
        }
        self.end();
    }

    /// `C_GetInfo`.
    pub(super) fn information(&mut self) {
        let is_null = self.draw.rarely(4);
        let mut info = Guarded::room(size_of::<CK_INFO>());
        let rv = call!(self, C_GetInfo(info.at_or_null(is_null)));
        let expected = self.model.gate().unwrap_or(if is_null { CKR_ARGUMENTS_BAD } else { CKR_OK });
        assert_eq!(rv, expected, "C_GetInfo");
        info.check(if rv == CKR_OK { info.len() } else { 0 });
    }

    /// The tables of functions, which a host gets before anything else and after the end, too.
    pub(super) fn interfaces(&mut self) {
        let is_null = self.draw.rarely(4);
        let mut list = Guarded::room(size_of::<*mut CK_FUNCTION_LIST>());
        let rv = call!(self, C_GetFunctionList(list.at_or_null(is_null)));
        assert_eq!(rv, if is_null { CKR_ARGUMENTS_BAD } else { CKR_OK }, "C_GetFunctionList");
        list.check(if is_null { 0 } else { list.len() });

        let (room, is_null, no_count) = (self.draw.below(4), self.draw.rarely(3), self.draw.rarely(4));
        let mut list = Guarded::room(room * size_of::<CK_INTERFACE>());
        let mut count = Guarded::of_value(long(room));
        let rv = call!(self, C_GetInterfaceList(list.at_or_null(is_null), count.at_or_null(no_count)));
        check_list("C_GetInterfaceList", rv, (&list, &count), (2, size_of::<CK_INTERFACE>()), (is_null, no_count));

        let name = self.draw.of(&[&b""[..], b"PKCS 11\0", b"PKCS 12\0", b"P\0", b"\0"]);
        let version = self.draw.of(&[(0, 0), (3, 0), (2, 40), (2, 20), (255, 255)]);
        let (is_null, flags) = (self.draw.rarely(4), self.draw.of(&[0, 0, 0, 1, CK_ULONG::MAX]));
        let (no_name, any_version) = (name.is_empty(), version == (0, 0));
        let mut name = Guarded::of(name);
        let mut wanted = Guarded::of_value(CK_VERSION { major: version.0, minor: version.1 });
        let mut found = Guarded::room(size_of::<*mut CK_INTERFACE>());
        let (at, wanted_at) = (name.at_or_null(no_name), wanted.at_or_null(any_version));
        let rv = call!(self, C_GetInterface(at, wanted_at, found.at_or_null(is_null), flags));
        let is_named = no_name || name.bytes() == b"PKCS 11\0";
        let expected = match is_named && flags == 0 && (any_version || matches!(version, (3, 0) | (2, 40))) {
            false => CKR_FUNCTION_FAILED,
            true if is_null => CKR_ARGUMENTS_BAD,
            true => CKR_OK,
        };
        assert_eq!(rv, expected, "C_GetInterface of {:?} {version:?}, flags {flags}", name.bytes());
        found.check(if rv == CKR_OK { found.len() } else { 0 });
    }

    /// `C_GenerateRandom`.
    pub(super) fn random(&mut self) {
        let session = self.a_session();
        let (is_null, is_absurd, len) = (self.draw.rarely(4), self.draw.rarely(4), self.draw.below(80));
        let mut room = Guarded::room(len);
        let said = if is_absurd { self.draw.of(&ABSURD) } else { long(len) };
        let rv = call!(self, C_GenerateRandom(session, room.at_or_null(is_null), said));
        let bad = if is_null || is_absurd { CKR_ARGUMENTS_BAD } else { CKR_OK };
        assert_eq!(rv, self.model.session_gate(session).unwrap_or(bad), "C_GenerateRandom");
        room.check(if rv == CKR_OK { len } else { 0 });
    }

    /// Functions that the module does not have: they answer so, and touch nothing.
    pub(super) fn unsupported(&mut self) {
        let session = self.a_session();
        let is_null = self.draw.rarely(3);
        let mut mechanism = Named::new(0x250, None, self.draw.of(&ABSURD));
        let (mut input, mut output) = (Guarded::of(b"some data"), Guarded::room(32));
        let (mut len, mut handle) = (Guarded::of_value::<CK_ULONG>(32), Guarded::of_value::<CK_ULONG>(7));
        let (named, data) = (mechanism.at_or_null(is_null), input.at_or_null::<CK_BYTE>(is_null));
        let (out, out_len) = (output.at_or_null::<CK_BYTE>(is_null), len.at_or_null::<CK_ULONG>(is_null));
        let object = handle.at_or_null::<CK_ULONG>(is_null);
        let said = if is_null { self.draw.of(&ABSURD) } else { 9 };
        let no_template = ptr::null_mut();
        let (rv, expected) = match self.draw.below(12) {
            0 => (call!(self, C_DigestInit(session, named)), CKR_FUNCTION_NOT_SUPPORTED),
            1 => (call!(self, C_Digest(session, data, said, out, out_len)), CKR_FUNCTION_NOT_SUPPORTED),
            2 => (call!(self, C_DigestUpdate(session, data, said)), CKR_FUNCTION_NOT_SUPPORTED),
            3 => (call!(self, C_DigestFinal(session, out, out_len)), CKR_FUNCTION_NOT_SUPPORTED),
            4 => (call!(self, C_EncryptInit(session, named, 1)), CKR_FUNCTION_NOT_SUPPORTED),
            5 => (call!(self, C_Decrypt(session, data, said, out, out_len)), CKR_FUNCTION_NOT_SUPPORTED),
            6 => (call!(self, C_GenerateKey(session, named, no_template, said, object)), CKR_FUNCTION_NOT_SUPPORTED),
            7 => (call!(self, C_WrapKey(session, named, 1, 2, out, out_len)), CKR_FUNCTION_NOT_SUPPORTED),
            8 => (call!(self, C_CopyObject(session, 1, no_template, said, object)), CKR_ACTION_PROHIBITED),
            9 => (call!(self, C_SeedRandom(session, data, said)), CKR_RANDOM_SEED_NOT_SUPPORTED),
            10 => (call!(self, C_CancelFunction(session)), CKR_FUNCTION_NOT_PARALLEL),
            _ => (call!(self, C_SignMessageBegin(session, data.cast(), said)), CKR_FUNCTION_NOT_SUPPORTED),
        };
        assert_eq!(rv, expected);
        mechanism.check();
        output.check_untouched();
        assert_eq!((len.value::<CK_ULONG>(), handle.value::<CK_ULONG>()), (32, 7));
    }
}

/// What a list has to be by the convention of PKCS#11 (2.40 base, section 5.2): `has` so many items of so many bytes.
#[track_caller]
pub(super) fn check_list(
    name: &str,
    rv: CK_RV,
    (list, count): (&Guarded, &Guarded),
    (has, size): (usize, usize),
    (is_null, no_count): (bool, bool),
) {
    let room = list.len() / size;
    let expected = match room < has {
        _ if no_count => CKR_ARGUMENTS_BAD,
        true if !is_null => CKR_BUFFER_TOO_SMALL,
        _ => CKR_OK,
    };
    assert_eq!(rv, expected, "{name}");
    assert_eq!(count.value::<CK_ULONG>(), if no_count { long(room) } else { long(has) }, "{name}");
    count.check(count.len());
    list.check(if rv == CKR_OK && !is_null { has * size } else { 0 });
}
