//! What there is once in each process.
//!
//! Programs call `C_Initialize`, fork, and call it again in the child (named, Knot DNS). The child has none of the threads of its
//! parent, and locks may be held there by threads that are gone. So everything belongs to the process that made it: a child finds
//! nothing of its parent's, and begins anew.
//!
//! A number of a process is given again when it is free, and in another namespace: a child may have that of its parent's parent. So forks are
//! counted, too.

use std::{
    process,
    sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock, atomic::AtomicU64},
};

use cryptoki_sys::{
    CK_SESSION_HANDLE, CK_SLOT_ID, CKR_CRYPTOKI_ALREADY_INITIALIZED, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_GENERAL_ERROR,
    CKR_SLOT_ID_INVALID,
};

use theta_keypool::Config;

use crate::{
    ffi::{forks, is_secure},
    log::Log,
    refusal::{Outcome, Refusal},
    sessions::{Session, Sessions},
    token::Token,
};

/// The module between `C_Initialize` and `C_Finalize`.
#[derive(Debug)]
pub(crate) struct Module {
    /// The next handle of an object: objects of all tokens and sessions have different ones, so that none is taken for another.
    handles: Arc<AtomicU64>,
    tokens: Vec<Arc<Token>>,
    sessions: Sessions,
}

/// What tells a process from its ancestors: its number, and how many forks there were down to it.
type Identity = (u32, u64);

/// The module in one process.
#[derive(Debug)]
struct Process {
    id: Identity,
    module: RwLock<Option<Arc<Module>>>,
    /// That of a child of this process.
    next: OnceLock<Box<Process>>,
}

/// The next handle of an object. A host that ends and begins anew gets others than before, so that an old one means nothing.
static HANDLES: LazyLock<Arc<AtomicU64>> = LazyLock::new(|| Arc::new(AtomicU64::new(1)));

static FIRST: OnceLock<Box<Process>> = OnceLock::new();

/// The place of this process. A process has those of its ancestors, which it leaves alone, and at the end its own.
fn here(make: bool) -> Option<&'static Process> {
    if make {
        forks::count_forks();
    }
    at((process::id(), forks::forks()), make)
}

fn at(id: Identity, make: bool) -> Option<&'static Process> {
    let mut place = &FIRST;
    loop {
        match place.get() {
            Some(process) if process.id == id => return Some(process),
            Some(ancestor) => place = &ancestor.next,
            None if make => {
                // Another thread may be quicker, with the same.
                let _ = place.set(Box::new(Process { id, module: RwLock::new(None), next: OnceLock::new() }));
            }
            None => return None,
        }
    }
}

/// The module, if it is initialised in this process.
pub(crate) fn module() -> Outcome<Arc<Module>> {
    let absent = Refusal(CKR_CRYPTOKI_NOT_INITIALIZED);
    let module = here(false).ok_or(absent)?.module.read().unwrap_or_else(PoisonError::into_inner);
    module.clone().ok_or(absent)
}

/// Begins. Nothing is sent before the host looks for a key, and no thread is started but for the lines of the log: one for each, where a
/// client file or the configuration is wrong.
pub(crate) fn initialise() -> Outcome<()> {
    let process = here(true).ok_or(Refusal(CKR_GENERAL_ERROR))?;
    let mut module = process.module.write().unwrap_or_else(PoisonError::into_inner);
    if module.is_some() {
        return Err(Refusal(CKR_CRYPTOKI_ALREADY_INITIALIZED));
    }
    let config = Config::load(is_secure()).map_err(|error| {
        Log::default().say(&error);
        Refusal(CKR_GENERAL_ERROR)
    })?;
    *module = Some(Arc::new(Module::new(config)));
    Ok(())
}

/// Ends. Calls that still run in other threads come to their end by themselves.
pub(crate) fn finalise() -> Outcome<()> {
    let absent = Refusal(CKR_CRYPTOKI_NOT_INITIALIZED);
    let mut module = here(false).ok_or(absent)?.module.write().unwrap_or_else(PoisonError::into_inner);
    module.take().map(drop).ok_or(absent)
}

impl Module {
    fn new(config: Config) -> Self {
        let handles = Arc::clone(&HANDLES);
        let (log, tokens) = (Log::new(config.log), config.tokens.into_iter());
        let tokens = tokens.map(|token| Arc::new(Token::new(token, log.clone(), Arc::clone(&handles)))).collect();
        Self { handles, tokens, sessions: Sessions::default() }
    }

    /// The slots: one for each token.
    pub(crate) fn slots(&self, with_token: bool) -> Vec<CK_SLOT_ID> {
        let slots = (0..).zip(&self.tokens);
        slots.filter(|(_, token)| !with_token || token.is_present()).map(|(slot, _)| slot).collect()
    }

    /// The token of a slot.
    pub(crate) fn token(&self, slot: CK_SLOT_ID) -> Outcome<&Arc<Token>> {
        usize::try_from(slot).ok().and_then(|slot| self.tokens.get(slot)).ok_or(Refusal(CKR_SLOT_ID_INVALID))
    }

    /// The next handle of an object.
    pub(crate) fn handles(&self) -> &AtomicU64 {
        &self.handles
    }

    /// All sessions.
    pub(crate) const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// A session.
    pub(crate) fn session(&self, handle: CK_SESSION_HANDLE) -> Outcome<Arc<Session>> {
        self.sessions.find(handle)
    }

    /// Opens a session with the token of a slot.
    pub(crate) fn open_session(&self, slot: CK_SLOT_ID, writable: bool) -> Outcome<CK_SESSION_HANDLE> {
        let token = self.token(slot)?;
        token.check_present()?;
        self.sessions.open(slot, writable, Arc::clone(token))
    }

    /// Closes all sessions of a slot, and logs the host out.
    pub(crate) fn close_all_sessions(&self, slot: CK_SLOT_ID) -> Outcome<()> {
        self.sessions.close_all(slot, self.token(slot)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_place_of_its_own() {
        let own = here(true).unwrap();
        assert!(std::ptr::eq(own, here(false).unwrap()));
        assert_eq!(own.id, (process::id(), forks::forks()));
        // Its number may be another process's, when it has ended.
        assert!(at((process::id(), forks::forks() + 1), false).is_none(), "a descendant finds nothing");
        assert_eq!(module().unwrap_err(), Refusal(CKR_CRYPTOKI_NOT_INITIALIZED));
        assert_eq!(finalise().unwrap_err(), Refusal(CKR_CRYPTOKI_NOT_INITIALIZED));
    }
}
