//! Sessions, and who the host is in them.

use std::ptr;

use cryptoki_sys::{
    CK_FLAGS, CK_RV, CK_SESSION_HANDLE, CK_SESSION_INFO, CK_SLOT_ID, CK_ULONG, CKF_FIND_OBJECTS, CKF_RW_SESSION,
    CKF_SERIAL_SESSION, CKF_SIGN, CKF_VERIFY, CKR_ARGUMENTS_BAD, CKR_DEVICE_ERROR, CKR_OK, CKR_PIN_INCORRECT,
    CKR_PIN_LEN_RANGE, CKR_SESSION_PARALLEL_NOT_SUPPORTED, CKR_USER_ALREADY_LOGGED_IN, CKR_USER_NOT_LOGGED_IN,
    CKR_USER_TYPE_INVALID, CKS_RO_PUBLIC_SESSION, CKS_RO_USER_FUNCTIONS, CKS_RW_PUBLIC_SESSION, CKS_RW_USER_FUNCTIONS,
    CKU_SO, CKU_USER,
};

use super::{
    Host,
    backing::LOCKED,
    draw::ABSURD,
    memory::{Guarded, long},
    model::Session,
};

impl Host<'_> {
    /// Opens a session as hosts do; its handle if there is one.
    pub(super) fn open(&mut self, slot: CK_SLOT_ID, is_writable: bool) -> Option<CK_SESSION_HANDLE> {
        let flags = CKF_SERIAL_SESSION | if is_writable { CKF_RW_SESSION } else { 0 };
        self.open_with((slot, flags), false).1
    }

    fn open_with(
        &mut self,
        (slot, flags): (CK_SLOT_ID, CK_FLAGS),
        is_null: bool,
    ) -> (CK_RV, Option<CK_SESSION_HANDLE>) {
        let mut handle = Guarded::room(size_of::<CK_SESSION_HANDLE>());
        let rv = call!(self, C_OpenSession(slot, flags, ptr::null_mut(), None, handle.at_or_null(is_null)));
        if rv != CKR_OK {
            handle.check_untouched();
            return (rv, None);
        }
        handle.check(handle.len());
        let opened: CK_SESSION_HANDLE = handle.value();
        assert!(opened > self.backing.last_session, "the handle {opened} was given before");
        self.backing.last_session = opened;
        let session = Session { slot, is_writable: flags & CKF_RW_SESSION != 0, ..Session::default() };
        self.model.sessions.insert(opened, session);
        (rv, Some(opened))
    }

    /// `C_OpenSession`.
    pub(super) fn open_session(&mut self) {
        let (slot, is_null) = (self.a_slot(), self.draw.rarely(8));
        let serial = CKF_SERIAL_SESSION;
        let flags = self.draw.of(&[serial, serial | CKF_RW_SESSION, serial, CKF_RW_SESSION, 0, CK_FLAGS::MAX]);
        let expected = match flags & serial {
            _ if !self.model.is_initialised => self.model.gate(),
            0 => Some(CKR_SESSION_PARALLEL_NOT_SUPPORTED),
            _ if is_null => Some(CKR_ARGUMENTS_BAD),
            _ => self.slot_gate(slot, true),
        };
        let (rv, _) = self.open_with((slot, flags), is_null);
        assert_eq!(rv, expected.unwrap_or(CKR_OK), "C_OpenSession of {slot}, flags {flags:#x}");
    }

    /// `C_CloseSession`.
    pub(super) fn close_session(&mut self) {
        let session = self.a_session();
        let rv = call!(self, C_CloseSession(session));
        assert_eq!(rv, self.model.session_gate(session).unwrap_or(CKR_OK), "C_CloseSession of {session}");
        self.model.closes(session);
    }

    /// `C_CloseAllSessions`.
    pub(super) fn close_all_sessions(&mut self) {
        let slot = self.a_slot();
        let rv = call!(self, C_CloseAllSessions(slot));
        assert_eq!(rv, self.slot_gate(slot, false).unwrap_or(CKR_OK), "C_CloseAllSessions of {slot}");
        if rv == CKR_OK {
            let here = self.model.sessions.iter().filter(|(_, session)| session.slot == slot);
            let here: Vec<_> = here.map(|(session, _)| *session).collect();
            here.into_iter().for_each(|session| self.model.closes(session));
        }
    }

    /// `C_GetSessionInfo`.
    pub(super) fn session_information(&mut self) {
        let (session, is_null) = (self.a_session(), self.draw.rarely(4));
        let mut info = Guarded::room(size_of::<CK_SESSION_INFO>());
        let rv = call!(self, C_GetSessionInfo(session, info.at_or_null(is_null)));
        let good = if is_null { CKR_ARGUMENTS_BAD } else { CKR_OK };
        assert_eq!(rv, self.model.session_gate(session).unwrap_or(good), "C_GetSessionInfo");
        info.check(if rv == CKR_OK { info.len() } else { 0 });
        if rv == CKR_OK {
            let (told, known) = (info.value::<CK_SESSION_INFO>(), &self.model.sessions[&session]);
            let state = match (known.is_writable, self.model.logged_in.contains(&known.slot)) {
                (false, false) => CKS_RO_PUBLIC_SESSION,
                (false, true) => CKS_RO_USER_FUNCTIONS,
                (true, false) => CKS_RW_PUBLIC_SESSION,
                (true, true) => CKS_RW_USER_FUNCTIONS,
            };
            let (slot, said): (CK_SLOT_ID, CK_ULONG) = (told.slotID, told.state);
            assert_eq!((slot, said), (known.slot, state), "the slot and the state of session {session}");
        }
    }

    /// `C_SessionCancel`.
    pub(super) fn cancel(&mut self) {
        let session = self.a_session();
        let flags = self.draw.of(&[CKF_SIGN, CKF_VERIFY, CKF_FIND_OBJECTS, CKF_SIGN | CKF_VERIFY, 0, CK_FLAGS::MAX]);
        let rv = call!(self, C_SessionCancel(session, flags));
        assert_eq!(rv, self.model.session_gate(session).unwrap_or(CKR_OK), "C_SessionCancel");
        if rv == CKR_OK {
            let known = self.model.session(session);
            let goes_on = |flag: CK_FLAGS| flags & flag == 0;
            known.signing = known.signing.take().filter(|_| goes_on(CKF_SIGN));
            known.verifying = known.verifying.take().filter(|_| goes_on(CKF_VERIFY));
            known.finding &= goes_on(CKF_FIND_OBJECTS);
        }
    }

    /// `C_Login`. The first token takes any PIN, and the second one none, since nobody can say that it is right.
    pub(super) fn log_in(&mut self) {
        let session = self.a_session();
        let user = self.draw.of(&[CKU_USER, CKU_USER, CKU_USER, CKU_SO, 2, CK_ULONG::MAX]);
        let (mut pin, is_null, is_absurd) = (self.draw.some(20), self.draw.rarely(6), self.draw.rarely(8));
        if self.draw.rarely(8) {
            pin.resize(1024, b'1');
        }
        let mut pin = Guarded::of(&pin);
        let said = if is_absurd { self.draw.of(&ABSURD) } else { long(pin.len()) };
        let rv = call!(self, C_Login(session, user, pin.at_or_null(is_null), said));
        pin.check(pin.len());
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "C_Login");
        }
        let slot = self.model.session(session).slot;
        let expected: &[CK_RV] = match user {
            CKU_USER if is_absurd => &[CKR_PIN_LEN_RANGE],
            CKU_USER if is_null && said > 0 => &[CKR_ARGUMENTS_BAD],
            CKU_USER if self.model.logged_in.contains(&slot) => &[CKR_USER_ALREADY_LOGGED_IN],
            CKU_USER if slot == LOCKED => &[CKR_PIN_INCORRECT, CKR_DEVICE_ERROR],
            CKU_USER => &[CKR_OK],
            _ => &[CKR_USER_TYPE_INVALID],
        };
        assert!(expected.contains(&rv), "C_Login in slot {slot}: {rv:#x}, not one of {expected:x?}");
        if rv == CKR_OK {
            self.model.logged_in.insert(slot);
        }
    }

    /// `C_Logout`.
    pub(super) fn log_out(&mut self) {
        let session = self.a_session();
        let rv = call!(self, C_Logout(session));
        let expected = self.model.session_gate(session).unwrap_or_else(|| {
            let slot = self.model.session(session).slot;
            if self.model.logged_in.remove(&slot) { CKR_OK } else { CKR_USER_NOT_LOGGED_IN }
        });
        assert_eq!(rv, expected, "C_Logout");
    }
}
