//! A host that misbehaves: from bytes it makes a sequence of calls, right ones and wrong ones, and checks each answer.
//!
//! The calls are those of the table that the module gives its hosts. What is expected stands in `model`, and where the host's memory may be
//! written in `memory`. The module is the real one, with a client of a group of which no node can be reached (`backing`): it knows keys,
//! verifies under them, and gets no signature.
//!
//! Two programs use this: the test beside it, and the fuzz target `pkcs11_calls`. A host breaks no rule here that the module could not see
//! broken: a pointer is null or leads to as much memory as is said, or more.

/// Calls a function of the table.
macro_rules! call {
    ($host:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = $host.backing.functions.$name.expect("the table has every function");
        // SAFETY: each pointer is null or leads to guarded memory, with room for what is said of it.
        let rv = unsafe { function($($argument),*) };
        $host.note(stringify!($name), rv)
    }};
}

mod backing;
mod changes;
mod draw;
mod general;
mod memory;
mod model;
mod objects;
mod sessions;
mod signatures;
mod slots;
mod templates;

use std::ptr;

use cryptoki_sys::{CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_OK};

pub(crate) use self::backing::Backing;
#[allow(unused_imports, reason = "the fuzz target makes sequences alone")]
pub(crate) use self::backing::POOLED;
use self::{
    draw::Draw,
    model::{ANSWERS, Model, Standing},
};

/// The most calls of one sequence.
const MOST_CALLS: usize = 200;
/// The most objects that the host remembers.
const MOST_OBJECTS: usize = 24;

/// The host while it runs.
pub(crate) struct Host<'a> {
    pub(crate) backing: &'a mut Backing,
    draw: Draw<'a>,
    pub(crate) model: Model,
}

/// Makes the calls that these bytes stand for, and ends what they have left.
///
/// # Panics
/// If the module gives an answer that it must not give, or writes where it must not write.
pub(crate) fn run(backing: &mut Backing, bytes: &[u8]) {
    if std::mem::take(&mut backing.is_changed) {
        backing.bind(true);
    }
    let mut host = Host { backing, draw: Draw::new(bytes), model: Model::default() };
    // Most hosts begin as they should; the others have to be told that nothing has begun.
    if !host.draw.rarely(8) {
        host.begin();
    }
    for _ in 0..MOST_CALLS {
        if host.draw.is_spent() {
            break;
        }
        host.step();
    }
    host.end();
}

impl<'a> Host<'a> {
    /// A host that has called nothing yet, for tests that say themselves what it does.
    #[allow(dead_code, reason = "the fuzz target makes sequences alone")]
    pub(crate) fn new(backing: &'a mut Backing) -> Self {
        Self { backing, draw: Draw::new(&[]), model: Model::default() }
    }

    /// Initialises, opens a session that can write, and looks at all objects.
    pub(crate) fn begin(&mut self) -> Option<CK_SESSION_HANDLE> {
        self.initialise();
        let session = self.open(backing::POOLED, true)?;
        self.look_at_all(session);
        Some(session)
    }

    /// Closes all sessions with the first token.
    #[allow(dead_code, reason = "the fuzz target makes sequences alone")]
    pub(crate) fn close_all(&mut self) {
        assert_eq!(call!(self, C_CloseAllSessions(POOLED)), CKR_OK);
    }

    /// Ends, whatever there is.
    pub(crate) fn end(&mut self) {
        let rv = call!(self, C_Finalize(ptr::null_mut()));
        assert_eq!(rv, if self.model.is_initialised { CKR_OK } else { CKR_CRYPTOKI_NOT_INITIALIZED });
        self.model.ends();
    }

    /// What the module answered is one of its answers.
    #[track_caller]
    fn note(&mut self, name: &'static str, rv: CK_RV) -> CK_RV {
        assert!(ANSWERS.contains(&rv), "{name} answered {rv:#x}");
        *self.backing.answers.entry((name, rv)).or_default() += 1;
        rv
    }

    /// One call, or a few that belong together.
    fn step(&mut self) {
        match self.draw.below(64) {
            0 => self.initialise(),
            1 => self.finalise(),
            2 => self.information(),
            3 => self.interfaces(),
            4 => self.unsupported(),
            5 => self.random(),
            6..9 => self.slots(),
            9..13 => self.open_session(),
            13 => self.close_session(),
            14 => self.close_all_sessions(),
            15 => self.session_information(),
            16 => self.cancel(),
            17..19 => self.log_in(),
            19 => self.log_out(),
            20..23 => self.find_begin(),
            23..26 => self.find_more(),
            26 => self.find_end(),
            27..32 => self.read_attributes(),
            32 => self.object_size(),
            33 => self.create(),
            34 => self.destroy(),
            35 => self.change(),
            36..38 => self.generate(),
            38..43 => self.sign_begin(),
            43..46 => self.sign_whole(),
            46..49 => self.sign_part(),
            49..51 => self.sign_end(),
            51..54 => self.verify_begin(),
            54..56 => self.verify_whole(),
            56..58 => self.verify_part(),
            58..60 => self.verify_end(),
            60 => self.verify_known(),
            _ => self.look_again(),
        }
    }

    /// Looks at all objects from one of the sessions.
    fn look_again(&mut self) {
        let session = self.a_session();
        if self.model.session_gate(session).is_none() {
            self.look_at_all(session);
        }
    }

    /// A session that is open, mostly.
    fn a_session(&mut self) -> CK_SESSION_HANDLE {
        if self.draw.rarely(16) {
            let closed = self.model.closed.last().copied().unwrap_or(0);
            return self.draw.of(&[0, CK_SESSION_HANDLE::MAX, closed]);
        }
        let open: Vec<_> = self.model.sessions.keys().copied().collect();
        if open.is_empty() { 0 } else { self.draw.of(&open) }
    }

    /// An object that there is, mostly, and what it is to this session.
    fn an_object(&mut self, session: CK_SESSION_HANDLE) -> (CK_OBJECT_HANDLE, Standing) {
        let stale = self.model.stale.last().copied().unwrap_or(0);
        let destroyed = self.model.destroyed.last().map_or(0, |object| object.handle);
        let known: Vec<_> = self.model.objects.iter().map(|object| object.handle).collect();
        let handle = if known.is_empty() || self.draw.rarely(8) {
            self.draw.of(&[0, CK_OBJECT_HANDLE::MAX, stale, destroyed])
        } else {
            self.draw.of(&known)
        };
        (handle, self.model.standing(session, handle))
    }
}
