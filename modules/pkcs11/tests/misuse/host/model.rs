//! What a host may expect after the calls that it has made.

use std::collections::{BTreeMap, BTreeSet};

use cryptoki_sys::{
    CK_OBJECT_CLASS, CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CK_SLOT_ID, CK_ULONG, CKR_ACTION_PROHIBITED,
    CKR_ARGUMENTS_BAD, CKR_ATTRIBUTE_READ_ONLY, CKR_ATTRIBUTE_SENSITIVE, CKR_ATTRIBUTE_TYPE_INVALID,
    CKR_ATTRIBUTE_VALUE_INVALID, CKR_BUFFER_TOO_SMALL, CKR_CRYPTOKI_ALREADY_INITIALIZED, CKR_CRYPTOKI_NOT_INITIALIZED,
    CKR_CURVE_NOT_SUPPORTED, CKR_DATA_INVALID, CKR_DATA_LEN_RANGE, CKR_DEVICE_ERROR, CKR_FUNCTION_FAILED,
    CKR_FUNCTION_NOT_PARALLEL, CKR_FUNCTION_NOT_SUPPORTED, CKR_HOST_MEMORY, CKR_KEY_FUNCTION_NOT_PERMITTED,
    CKR_KEY_HANDLE_INVALID, CKR_KEY_TYPE_INCONSISTENT, CKR_MECHANISM_INVALID, CKR_MECHANISM_PARAM_INVALID,
    CKR_OBJECT_HANDLE_INVALID, CKR_OK, CKR_OPERATION_ACTIVE, CKR_OPERATION_NOT_INITIALIZED, CKR_PIN_INCORRECT,
    CKR_PIN_LEN_RANGE, CKR_RANDOM_SEED_NOT_SUPPORTED, CKR_SESSION_HANDLE_INVALID, CKR_SESSION_PARALLEL_NOT_SUPPORTED,
    CKR_SESSION_READ_ONLY, CKR_SIGNATURE_INVALID, CKR_SIGNATURE_LEN_RANGE, CKR_SLOT_ID_INVALID,
    CKR_TEMPLATE_INCOMPLETE, CKR_TEMPLATE_INCONSISTENT, CKR_TOKEN_NOT_PRESENT, CKR_USER_ALREADY_LOGGED_IN,
    CKR_USER_NOT_LOGGED_IN, CKR_USER_TYPE_INVALID,
};

/// What the module may answer where no node does. `CKR_GENERAL_ERROR`, which a panic would be, is not among it.
pub(crate) const ANSWERS: &[CK_RV] = &[
    CKR_OK,
    CKR_ACTION_PROHIBITED,
    CKR_ARGUMENTS_BAD,
    CKR_ATTRIBUTE_READ_ONLY,
    CKR_ATTRIBUTE_SENSITIVE,
    CKR_ATTRIBUTE_TYPE_INVALID,
    CKR_ATTRIBUTE_VALUE_INVALID,
    CKR_BUFFER_TOO_SMALL,
    CKR_CRYPTOKI_ALREADY_INITIALIZED,
    CKR_CRYPTOKI_NOT_INITIALIZED,
    CKR_CURVE_NOT_SUPPORTED,
    CKR_DATA_INVALID,
    CKR_DATA_LEN_RANGE,
    CKR_DEVICE_ERROR,
    CKR_FUNCTION_FAILED,
    CKR_FUNCTION_NOT_PARALLEL,
    CKR_FUNCTION_NOT_SUPPORTED,
    CKR_HOST_MEMORY,
    CKR_KEY_FUNCTION_NOT_PERMITTED,
    CKR_KEY_HANDLE_INVALID,
    CKR_KEY_TYPE_INCONSISTENT,
    CKR_MECHANISM_INVALID,
    CKR_MECHANISM_PARAM_INVALID,
    CKR_OBJECT_HANDLE_INVALID,
    CKR_OPERATION_ACTIVE,
    CKR_OPERATION_NOT_INITIALIZED,
    CKR_PIN_INCORRECT,
    CKR_PIN_LEN_RANGE,
    CKR_RANDOM_SEED_NOT_SUPPORTED,
    CKR_SESSION_HANDLE_INVALID,
    CKR_SESSION_PARALLEL_NOT_SUPPORTED,
    CKR_SESSION_READ_ONLY,
    CKR_SIGNATURE_INVALID,
    CKR_SIGNATURE_LEN_RANGE,
    CKR_SLOT_ID_INVALID,
    CKR_TEMPLATE_INCOMPLETE,
    CKR_TEMPLATE_INCONSISTENT,
    CKR_TOKEN_NOT_PRESENT,
    CKR_USER_ALREADY_LOGGED_IN,
    CKR_USER_NOT_LOGGED_IN,
    CKR_USER_TYPE_INVALID,
];

/// What a session has begun.
#[derive(Default)]
pub(crate) struct Begun {
    /// The length that its signature will have, once the module has said it.
    pub(crate) needed: Option<CK_ULONG>,
    /// Whether its data come in parts.
    pub(crate) in_parts: bool,
}

/// An open session.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) slot: CK_SLOT_ID,
    pub(crate) is_writable: bool,
    pub(crate) finding: bool,
    pub(crate) signing: Option<Begun>,
    pub(crate) verifying: Option<Begun>,
}

/// An object that the host knows.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) handle: CK_OBJECT_HANDLE,
    pub(crate) slot: CK_SLOT_ID,
    /// The session that has made it; `None` for an object of the token.
    pub(crate) of: Option<CK_SESSION_HANDLE>,
    pub(crate) class: CK_OBJECT_CLASS,
    pub(crate) label: Vec<u8>,
}

/// What an object's handle is to a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It can be used.
    Good,
    /// A host has destroyed the object.
    Destroyed,
    /// There never was such an object here.
    Wrong,
}

/// What there is between two calls.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) is_initialised: bool,
    pub(crate) sessions: BTreeMap<CK_SESSION_HANDLE, Session>,
    pub(crate) logged_in: BTreeSet<CK_SLOT_ID>,
    pub(crate) objects: Vec<Object>,
    pub(crate) destroyed: Vec<Object>,
    /// Handles of before the last end, which are good for nothing.
    pub(crate) stale: Vec<CK_OBJECT_HANDLE>,
    pub(crate) closed: Vec<CK_SESSION_HANDLE>,
}

impl Model {
    /// What each function says before it looks at anything else, if it does not go on.
    pub(crate) const fn gate(&self) -> Option<CK_RV> {
        if self.is_initialised { None } else { Some(CKR_CRYPTOKI_NOT_INITIALIZED) }
    }

    /// The same of functions of a session.
    pub(crate) fn session_gate(&self, session: CK_SESSION_HANDLE) -> Option<CK_RV> {
        let known = self.sessions.contains_key(&session);
        self.gate().or_else(|| (!known).then_some(CKR_SESSION_HANDLE_INVALID))
    }

    pub(crate) fn session(&mut self, session: CK_SESSION_HANDLE) -> &mut Session {
        self.sessions.get_mut(&session).expect("the session is open")
    }

    /// What is left after the end.
    pub(crate) fn ends(&mut self) {
        self.is_initialised = false;
        self.closed.extend(std::mem::take(&mut self.sessions).into_keys());
        self.logged_in.clear();
        let objects = self.objects.drain(..).chain(self.destroyed.drain(..));
        self.stale.extend(objects.map(|object| object.handle));
    }

    /// A session is closed; with the last one of a slot its host is logged out.
    pub(crate) fn closes(&mut self, session: CK_SESSION_HANDLE) {
        let Some(Session { slot, .. }) = self.sessions.remove(&session) else { return };
        self.closed.push(session);
        self.objects.retain(|object| object.of != Some(session));
        if self.sessions.values().all(|other| other.slot != slot) {
            self.logged_in.remove(&slot);
        }
    }

    /// What is known of an object from a session. The handle is one of those that [`Model`] has, or zero or the largest.
    pub(crate) fn standing(&self, session: CK_SESSION_HANDLE, handle: CK_OBJECT_HANDLE) -> Standing {
        let slot = self.sessions.get(&session).map(|session| session.slot);
        // What one session has made all sessions of its slot see.
        let is_seen = |object: &&Object| object.handle == handle && Some(object.slot) == slot;
        match (self.objects.iter().find(is_seen), self.destroyed.iter().find(is_seen)) {
            (_, Some(_)) => Standing::Destroyed,
            (Some(_), None) => Standing::Good,
            (None, None) => Standing::Wrong,
        }
    }
}
