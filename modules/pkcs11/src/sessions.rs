//! The state of the host's sessions: what it looks for, what it is signing or verifying, and objects of its own.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cryptoki_sys::{
    CK_OBJECT_HANDLE, CK_SESSION_HANDLE, CK_SLOT_ID, CK_STATE, CK_ULONG, CKA_CLASS, CKA_TOKEN, CKO_PUBLIC_KEY,
    CKR_ATTRIBUTE_VALUE_INVALID, CKR_DATA_LEN_RANGE, CKR_HOST_MEMORY, CKR_KEY_FUNCTION_NOT_PERMITTED,
    CKR_KEY_HANDLE_INVALID, CKR_OBJECT_HANDLE_INVALID, CKR_OPERATION_ACTIVE, CKR_OPERATION_NOT_INITIALIZED,
    CKR_SESSION_COUNT, CKR_SESSION_HANDLE_INVALID, CKR_SESSION_READ_ONLY, CKR_SIGNATURE_INVALID,
    CKR_SIGNATURE_LEN_RANGE, CKR_TEMPLATE_INCOMPLETE, CKR_TEMPLATE_INCONSISTENT, CKS_RO_PUBLIC_SESSION,
    CKS_RO_USER_FUNCTIONS, CKS_RW_PUBLIC_SESSION, CKS_RW_USER_FUNCTIONS,
};

use crate::{
    generation,
    mechanisms::{self, Mechanism, Plan, Request},
    objects::{Attribute, Class, Object, next_handle},
    refusal::{Outcome, Refusal},
    token::Token,
};

/// The most sessions of a process.
const MOST_SESSIONS: usize = 65_536;
/// The most objects that a session makes.
const MOST_OBJECTS: usize = 256;
/// The longest message in bytes: what fits into a message to a node (32 MiB), with what belongs to it.
pub(crate) const MOST_MESSAGE: usize = 31 << 20;

/// The last handle of a session. A host that ends and begins anew gets others than before, so that an old one means nothing.
static LAST: AtomicU64 = AtomicU64::new(0);

/// All sessions of a process.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: RwLock<BTreeMap<CK_SESSION_HANDLE, Arc<Session>>>,
    /// By slot, what the sessions have made: each of them sees that of all (PKCS#11 2.40 usage guide, section 2.6).
    made: Mutex<BTreeMap<CK_SLOT_ID, Arc<Made>>>,
}

/// Session objects of one slot, by the session that has made them, and with which they go.
#[derive(Debug, Default)]
struct Made(Mutex<BTreeMap<CK_SESSION_HANDLE, BTreeMap<CK_OBJECT_HANDLE, Arc<Object>>>>);

impl Made {
    fn get(&self, handle: CK_OBJECT_HANDLE) -> Option<Arc<Object>> {
        locked(&self.0).values().find_map(|made| made.get(&handle)).cloned()
    }

    fn matching(&self, template: &[Attribute]) -> Vec<CK_OBJECT_HANDLE> {
        let made = locked(&self.0);
        let all = made.values().flat_map(BTreeMap::values);
        all.filter(|object| object.matches(template)).map(|object| object.handle).collect()
    }

    fn put(&self, creator: CK_SESSION_HANDLE, object: Object) -> Outcome<()> {
        let mut made = locked(&self.0);
        // Another thread may have closed the session.
        let own = made.get_mut(&creator).ok_or(Refusal(CKR_SESSION_HANDLE_INVALID))?;
        if own.len() >= MOST_OBJECTS {
            return Err(Refusal(CKR_HOST_MEMORY));
        }
        own.insert(object.handle, Arc::new(object));
        Ok(())
    }

    /// Whether there was such an object.
    fn remove(&self, handle: CK_OBJECT_HANDLE) -> bool {
        locked(&self.0).values_mut().any(|made| made.remove(&handle).is_some())
    }
}

/// One session. Its parts have locks of their own, none of which is held while the nodes are asked.
pub(crate) struct Session {
    handle: CK_SESSION_HANDLE,
    slot: CK_SLOT_ID,
    writable: bool,
    token: Arc<Token>,
    /// Handles of objects that `C_FindObjects` has not given yet.
    found: Mutex<Option<VecDeque<CK_OBJECT_HANDLE>>>,
    signing: Mutex<Option<Operation>>,
    verifying: Mutex<Option<Operation>>,
    /// What the sessions of this slot have made.
    made: Arc<Made>,
}

/// A signature that is being made or verified.
#[derive(Debug)]
struct Operation {
    object: Arc<Object>,
    plan: Plan,
    /// The parts of the data so far, if they come in parts.
    parts: Option<Vec<u8>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("slot", &self.slot).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(crate) fn open(&self, slot: CK_SLOT_ID, writable: bool, token: Arc<Token>) -> Outcome<CK_SESSION_HANDLE> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST_SESSIONS {
            return Err(Refusal(CKR_SESSION_COUNT));
        }
        // Zero is no handle.
        let handle = LAST.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let made = Arc::clone(locked(&self.made).entry(slot).or_default());
        locked(&made.0).entry(handle).or_default();
        let session = Session {
            handle,
            slot,
            writable,
            token,
            found: Mutex::default(),
            signing: Mutex::default(),
            verifying: Mutex::default(),
            made,
        };
        open.insert(handle, Arc::new(session));
        Ok(handle)
    }

    pub(crate) fn find(&self, handle: CK_SESSION_HANDLE) -> Outcome<Arc<Session>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&handle).cloned().ok_or(Refusal(CKR_SESSION_HANDLE_INVALID))
    }

    /// Closes a session; with the last one of its slot the host is logged out.
    pub(crate) fn close(&self, handle: CK_SESSION_HANDLE) -> Outcome<()> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let closed = open.remove(&handle).ok_or(Refusal(CKR_SESSION_HANDLE_INVALID))?;
        closed.forget_made();
        // In one step: a session that another thread opens meanwhile, and logs in, stays logged in.
        if !open.values().any(|session| session.slot == closed.slot) {
            closed.token.log_out();
        }
        Ok(())
    }

    /// Closes all sessions of a slot, whose token this is.
    pub(crate) fn close_all(&self, slot: CK_SLOT_ID, token: &Token) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let closed = open.extract_if(.., |_, session| session.slot == slot);
        closed.for_each(|(_, session)| session.forget_made());
        token.log_out();
    }

    /// Takes the host's PIN. To check it may take long: the host is logged in only if a session of the slot is still open then.
    pub(crate) fn log_in(&self, handle: CK_SESSION_HANDLE, pin: &[u8]) -> Outcome<()> {
        let session = self.find(handle)?;
        let client = session.token.credentials(pin)?;
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if !open.values().any(|open| open.slot == session.slot) {
            return Err(Refusal(CKR_SESSION_HANDLE_INVALID));
        }
        session.token.log_in(client)
    }

    /// How many sessions a slot has, and how many of them can write.
    pub(crate) fn count(&self, slot: CK_SLOT_ID) -> (CK_ULONG, CK_ULONG) {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let here = open.values().filter(|session| session.slot == slot);
        here.fold((0, 0), |(all, writable), session| (all + 1, writable + CK_ULONG::from(session.writable)))
    }
}

impl Session {
    pub(crate) const fn slot(&self) -> CK_SLOT_ID {
        self.slot
    }

    pub(crate) const fn is_writable(&self) -> bool {
        self.writable
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// It is closed: what it has made goes with it.
    fn forget_made(&self) {
        locked(&self.made.0).remove(&self.handle);
    }

    /// What `C_GetSessionInfo` says.
    pub(crate) fn state(&self) -> CK_STATE {
        match (self.writable, self.token.is_logged_in()) {
            (false, false) => CKS_RO_PUBLIC_SESSION,
            (false, true) => CKS_RO_USER_FUNCTIONS,
            (true, false) => CKS_RW_PUBLIC_SESSION,
            (true, true) => CKS_RW_USER_FUNCTIONS,
        }
    }

    /// An object of the token or of a session with it.
    pub(crate) fn object(&self, handle: CK_OBJECT_HANDLE) -> Outcome<Arc<Object>> {
        self.made.get(handle).or_else(|| self.token.object(handle)).ok_or(Refusal(CKR_OBJECT_HANDLE_INVALID))
    }

    /// Begins to look for objects.
    pub(crate) fn find_init(&self, template: &[Attribute]) -> Outcome<()> {
        if locked(&self.found).is_some() {
            return Err(Refusal(CKR_OPERATION_ACTIVE));
        }
        let mut found: VecDeque<_> = self.token.find(template)?.into();
        found.extend(self.made.matching(template));
        *locked(&self.found) = Some(found);
        Ok(())
    }

    /// The next objects, at most so many.
    pub(crate) fn find_next(&self, most: usize) -> Outcome<Vec<CK_OBJECT_HANDLE>> {
        let mut found = locked(&self.found);
        let found = found.as_mut().ok_or(Refusal(CKR_OPERATION_NOT_INITIALIZED))?;
        let count = most.min(found.len());
        Ok(found.drain(..count).collect())
    }

    /// Ends looking.
    pub(crate) fn find_final(&self) -> Outcome<()> {
        locked(&self.found).take().map(drop).ok_or(Refusal(CKR_OPERATION_NOT_INITIALIZED))
    }

    /// Takes a host's public key as an object that goes with this session, and that all see: one of the group's, so that signatures under it can be verified.
    pub(crate) fn create(&self, template: &[Attribute], next: &AtomicU64) -> Outcome<CK_OBJECT_HANDLE> {
        let given =
            |kind| template.iter().find(|attribute| attribute.kind == kind).map(|attribute| &attribute.value[..]);
        if given(CKA_CLASS).ok_or(Refusal(CKR_TEMPLATE_INCOMPLETE))? != CKO_PUBLIC_KEY.to_ne_bytes() {
            return Err(Refusal(CKR_TEMPLATE_INCONSISTENT));
        }
        if given(CKA_TOKEN).is_some_and(|value| value != [0]) {
            return Err(Refusal(CKR_ATTRIBUTE_VALUE_INVALID));
        }
        let key = self.token.given_by(template)?;
        let handle = next_handle(next);
        let object = Object {
            handle,
            class: Class::Public,
            key,
            on_token: false,
            hidden: false,
            destroyable: true,
            binding: None,
        };
        self.made.put(self.handle, object)?;
        Ok(handle)
    }

    /// Destroys an object: one that a session has made, or a key of the group.
    pub(crate) fn destroy(&self, handle: CK_OBJECT_HANDLE) -> Outcome<()> {
        if self.made.remove(handle) {
            return Ok(());
        }
        if self.token.is_released(handle) {
            // Hosts destroy one of the two objects, and then the other one that they have found before.
            return Ok(());
        }
        let object = self.object(handle)?;
        self.check_writable()?;
        self.token.destroy(&object)
    }

    fn check_writable(&self) -> Outcome<()> {
        if self.writable { Ok(()) } else { Err(Refusal(CKR_SESSION_READ_ONLY)) }
    }

    /// Gives the host a key of the pool: the handles of its public and its private key.
    pub(crate) fn generate(
        &self,
        mechanism: &Mechanism,
        public: &[Attribute],
        private: &[Attribute],
    ) -> Outcome<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE)> {
        self.token.check_pool()?;
        self.check_writable()?;
        let wanted = generation::wanted(mechanism, public, private).map_err(|(refusal, reason)| {
            self.token.log().say(format_args!("no key is made by mechanism {:#x}: {reason}", mechanism.kind));
            refusal
        })?;
        self.token.generate(&wanted)
    }

    /// Changes the `CKA_ID` or the label of a key that a host has made.
    pub(crate) fn set_attributes(&self, handle: CK_OBJECT_HANDLE, attributes: &[Attribute]) -> Outcome<()> {
        let object = self.object(handle)?;
        self.check_writable()?;
        self.token.rename(&object, attributes)
    }

    fn begin(
        &self,
        place: &Mutex<Option<Operation>>,
        mechanism: &Mechanism,
        key: CK_OBJECT_HANDLE,
        class: Class,
    ) -> Outcome<()> {
        let mut place = locked(place);
        if place.is_some() {
            return Err(Refusal(CKR_OPERATION_ACTIVE));
        }
        let object = self.object(key).map_err(|_| Refusal(CKR_KEY_HANDLE_INVALID))?;
        if object.class != class {
            return Err(Refusal(CKR_KEY_FUNCTION_NOT_PERMITTED));
        }
        let suite = object.key.public.suite();
        let plan = mechanisms::plan(mechanism, suite).inspect_err(|_| {
            self.token.log().say(format_args!(
                "{} ({suite}) does not serve mechanism {:#x} with such parameters",
                object.key.reference, mechanism.kind
            ));
        })?;
        *place = Some(Operation { object, plan, parts: None });
        Ok(())
    }

    /// `C_SignInit`.
    pub(crate) fn sign_init(&self, mechanism: &Mechanism, key: CK_OBJECT_HANDLE) -> Outcome<()> {
        self.begin(&self.signing, mechanism, key, Class::Private)
    }

    /// `C_VerifyInit`.
    pub(crate) fn verify_init(&self, mechanism: &Mechanism, key: CK_OBJECT_HANDLE) -> Outcome<()> {
        self.begin(&self.verifying, mechanism, key, Class::Public)
    }

    /// Gives up what was begun, as `C_SignInit` and `C_VerifyInit` without a mechanism and `C_SessionCancel` ask for.
    pub(crate) fn cancel(&self, signing: bool, verifying: bool, finding: bool) {
        if signing {
            drop(locked(&self.signing).take());
        }
        if verifying {
            drop(locked(&self.verifying).take());
        }
        if finding {
            drop(locked(&self.found).take());
        }
    }

    /// How long the signature will be, which the host asks first. Nothing begins by it.
    pub(crate) fn signature_len(&self) -> Outcome<usize> {
        let signing = locked(&self.signing);
        let operation = signing.as_ref().ok_or(Refusal(CKR_OPERATION_NOT_INITIALIZED))?;
        Ok(operation.object.key.signature_len())
    }

    /// `C_Sign`: all data at once.
    pub(crate) fn sign(&self, data: &[u8]) -> Outcome<Vec<u8>> {
        let operation = taken(&self.signing)?;
        let request = operation.whole(data)?;
        self.token.sign(&operation.object.key, request)
    }

    /// `C_SignUpdate`.
    pub(crate) fn sign_update(&self, part: &[u8]) -> Outcome<()> {
        update(&self.signing, part)
    }

    /// `C_SignFinal`.
    pub(crate) fn sign_final(&self) -> Outcome<Vec<u8>> {
        let operation = taken(&self.signing)?;
        let request = operation.in_parts()?;
        self.token.sign(&operation.object.key, request)
    }

    /// `C_Verify`.
    pub(crate) fn verify(&self, data: &[u8], signature: &[u8]) -> Outcome<()> {
        let operation = taken(&self.verifying)?;
        let request = operation.whole(data)?;
        operation.check(&request, signature)
    }

    /// `C_VerifyUpdate`.
    pub(crate) fn verify_update(&self, part: &[u8]) -> Outcome<()> {
        update(&self.verifying, part)
    }

    /// `C_VerifyFinal`.
    pub(crate) fn verify_final(&self, signature: &[u8]) -> Outcome<()> {
        let operation = taken(&self.verifying)?;
        let request = operation.in_parts()?;
        operation.check(&request, signature)
    }
}

/// The operation, which ends by this, however it ends.
fn taken(place: &Mutex<Option<Operation>>) -> Outcome<Operation> {
    locked(place).take().ok_or(Refusal(CKR_OPERATION_NOT_INITIALIZED))
}

/// Takes one more part of the data; a part too many ends the operation.
fn update(place: &Mutex<Option<Operation>>, part: &[u8]) -> Outcome<()> {
    let mut place = locked(place);
    let operation = place.as_mut().ok_or(Refusal(CKR_OPERATION_NOT_INITIALIZED))?;
    let parts = operation.parts.get_or_insert_default();
    if parts.len().saturating_add(part.len()) > MOST_MESSAGE {
        *place = None;
        return Err(Refusal(CKR_DATA_LEN_RANGE));
    }
    parts.extend_from_slice(part);
    Ok(())
}

impl Operation {
    fn whole(&self, data: &[u8]) -> Outcome<Request> {
        if self.parts.is_some() {
            return Err(Refusal(CKR_OPERATION_NOT_INITIALIZED));
        }
        if data.len() > MOST_MESSAGE {
            return Err(Refusal(CKR_DATA_LEN_RANGE));
        }
        self.plan.request(data)
    }

    fn in_parts(&self) -> Outcome<Request> {
        self.plan.request(self.parts.as_deref().unwrap_or_default())
    }

    fn check(&self, request: &Request, signature: &[u8]) -> Outcome<()> {
        if signature.len() != self.object.key.signature_len() {
            return Err(Refusal(CKR_SIGNATURE_LEN_RANGE));
        }
        if self.object.key.accepts(request, signature) { Ok(()) } else { Err(Refusal(CKR_SIGNATURE_INVALID)) }
    }
}
