//! The module under a host that misbehaves.
//!
//! A program of its own: there is one module in a process, and a variable of the process says where its configuration is.

#![allow(unsafe_code, reason = "hosts call functions of C")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "the helpers of tests are test code, too"
)]

mod host;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use cryptoki_sys::{
    CK_FUNCTION_LIST_3_0, CK_OBJECT_CLASS, CK_RV, CK_SESSION_INFO, CKF_SERIAL_SESSION, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY,
    CKR_ARGUMENTS_BAD, CKR_BUFFER_TOO_SMALL, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_DEVICE_ERROR, CKR_KEY_HANDLE_INVALID,
    CKR_OBJECT_HANDLE_INVALID, CKR_OK, CKR_OPERATION_ACTIVE, CKR_OPERATION_NOT_INITIALIZED, CKR_PIN_INCORRECT,
    CKR_SESSION_HANDLE_INVALID, CKR_SESSION_READ_ONLY, CKR_SIGNATURE_INVALID, CKR_USER_ALREADY_LOGGED_IN,
    CKS_RO_USER_FUNCTIONS, CKU_USER,
};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng as _, SeedableRng as _},
};
use theta_pkcs11::ffi::C_GetInterface;

use crate::host::{Backing, Host, POOLED};

/// How many sequences there are at most, and at least, however slow the machine is.
const SEQUENCES: (u64, u64) = (3_000, 200);
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(8);
/// How many bytes a sequence is made of.
const LEN: usize = 700;
/// How many calls wait for nodes.
const WAITS: u32 = 6;

/// What the sequences have to bring about: else the host does not misbehave enough.
const REACHED: [(&str, CK_RV); 24] = [
    ("C_Initialize", CKR_ARGUMENTS_BAD),
    ("C_GetInterface", CKR_OK),
    ("C_GetSlotList", CKR_BUFFER_TOO_SMALL),
    ("C_GetTokenInfo", CKR_CRYPTOKI_NOT_INITIALIZED),
    ("C_OpenSession", CKR_OK),
    ("C_GetSessionInfo", CKR_SESSION_HANDLE_INVALID),
    ("C_Login", CKR_OK),
    ("C_Login", CKR_PIN_INCORRECT),
    ("C_Logout", CKR_OK),
    ("C_FindObjectsInit", CKR_OPERATION_ACTIVE),
    ("C_FindObjects", CKR_OPERATION_NOT_INITIALIZED),
    ("C_GetAttributeValue", CKR_BUFFER_TOO_SMALL),
    ("C_CreateObject", CKR_OK),
    ("C_DestroyObject", CKR_OK),
    ("C_SetAttributeValue", CKR_OK),
    ("C_SetAttributeValue", CKR_SESSION_READ_ONLY),
    ("C_GenerateKeyPair", CKR_DEVICE_ERROR),
    ("C_SignInit", CKR_OK),
    ("C_SignInit", CKR_KEY_HANDLE_INVALID),
    ("C_Sign", CKR_BUFFER_TOO_SMALL),
    ("C_SignUpdate", CKR_OK),
    ("C_SignFinal", CKR_BUFFER_TOO_SMALL),
    ("C_Verify", CKR_OK),
    ("C_Verify", CKR_SIGNATURE_INVALID),
];

/// There is one module for all tests of this program.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the sequence of this number.
fn run(backing: &mut Backing, number: u64) {
    let mut bytes = [0; LEN];
    ChaCha20Rng::seed_from_u64(number).fill_bytes(&mut bytes);
    let done = catch_unwind(AssertUnwindSafe(|| host::run(backing, &bytes)));
    assert!(done.is_ok(), "the words above are of a sequence that THETA_SEED={number} repeats");
}

/// Thousands of sequences of calls, right ones and wrong ones; `THETA_SEED` makes one of them alone. The fuzz target `pkcs11_calls` makes
/// others.
#[test]
fn no_sequence_of_calls_does_harm() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let mut backing = Backing::new(folder.path(), C_GetInterface);
    backing.waits = WAITS;
    if let Ok(number) = env::var("THETA_SEED") {
        return run(&mut backing, number.parse().unwrap());
    }
    let began = Instant::now();
    let numbers = (0..SEQUENCES.0).take_while(|number| *number < SEQUENCES.1 || began.elapsed() < PATIENCE);
    numbers.for_each(|number| run(&mut backing, number));
    for (name, rv) in REACHED {
        assert!(backing.answers.contains_key(&(name, rv)), "no call of {name} is answered by {rv:#x}");
    }
    assert!(backing.waits < WAITS, "no call asks the nodes for a signature");
}

#[test]
fn a_handle_of_before_the_end_means_nothing_after_it() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let mut backing = Backing::new(folder.path(), C_GetInterface);
    let mut host = Host::new(&mut backing);
    let first = host.begin().unwrap();
    host.end();
    let second = host.begin().unwrap();
    assert_ne!(first, second, "a session of before the end is another one after it");
    host.end();
}

/// What another program has destroyed meanwhile is not made anew by a program that still knows it.
#[test]
fn a_public_object_that_is_gone_is_not_renamed() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let mut backing = Backing::new(folder.path(), C_GetInterface);
    let mut host = Host::new(&mut backing);
    let session = host.begin().unwrap();
    let objects = host.model.objects.clone();
    let made = |class: CK_OBJECT_CLASS| {
        objects.iter().find(|object| object.class == class && object.label == b"made-1").unwrap().handle
    };
    host.backing.bind(false);
    let before = host.backing.bindings();
    assert_eq!(host.rename(session, made(CKO_PUBLIC_KEY), b"again"), CKR_OBJECT_HANDLE_INVALID);
    assert_eq!(host.backing.bindings(), before);
    assert_eq!(host.rename(session, made(CKO_PRIVATE_KEY), b"again"), CKR_OK);
    assert_eq!(host.backing.bindings().matches("public").count(), 1, "{}", host.backing.bindings());
    host.end();
}

/// Opens a session with the first token, logs in, and closes it: whether the host was logged in meanwhile.
fn visit(functions: &CK_FUNCTION_LIST_3_0, log_in: bool) -> bool {
    let (mut session, mut info, pin) = (0, CK_SESSION_INFO::default(), b"1234");
    let flags = CKF_SERIAL_SESSION;
    // SAFETY: the pointers are null or lead to variables of this function, with room for what is said of them.
    unsafe {
        let open = functions.C_OpenSession.unwrap();
        assert_eq!(open(POOLED, flags, ptr::null_mut(), None, &raw mut session), CKR_OK);
        if log_in {
            let rv = functions.C_Login.unwrap()(session, CKU_USER, pin.as_ptr().cast_mut(), 4);
            assert!(matches!(rv, CKR_OK | CKR_USER_ALREADY_LOGGED_IN), "{rv:#x}");
        }
        assert_eq!(functions.C_GetSessionInfo.unwrap()(session, &raw mut info), CKR_OK);
        assert_eq!(functions.C_CloseSession.unwrap()(session), CKR_OK);
    }
    let state = info.state;
    state == CKS_RO_USER_FUNCTIONS
}

/// The last session of a slot logs the host out when it is closed. One that another thread opens at this moment is not the last.
#[test]
fn who_closes_a_session_logs_no_other_thread_out() {
    const THREADS: usize = 8;
    /// The moment is short: threads have to be stopped in it.
    const ENOUGH: Duration = Duration::from_secs(1);
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let mut backing = Backing::new(folder.path(), C_GetInterface);
    let functions = backing.functions;
    let mut host = Host::new(&mut backing);
    host.begin().unwrap();
    host.close_all();
    let began = Instant::now();
    let rounds = || (0..).take_while(|_| began.elapsed() < ENOUGH).filter(|_: &u64| !visit(functions, true)).count();
    let logged_out: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(rounds)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(logged_out, 0, "who is logged in stays so while a session of its own is open");
    assert!(!visit(functions, false), "with the last session the host is logged out");
    host.end();
}
