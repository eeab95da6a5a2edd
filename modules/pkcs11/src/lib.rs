//! The PKCS#11 module of Thetacrypt, `libtheta_pkcs11.so`: programs that sign with a token sign with a key that no machine holds.
//!
//! It holds no key and does no cryptography with one: it is a client of the nodes (`theta-client`), behind the C interface of
//! PKCS#11 2.40 and 3.0. Each token is a group, and its objects are the group's live keys. `docs/guides/pkcs11.md` says how to use it,
//! `docs/adr/0052-pkcs11-module.md` why it is as it is.
//!
//! - [`ffi`] is the border to C: all `unsafe` is there, and what passes it is copied and bounded.
//! - `process` is what there is once in each process, also after `fork`; `sessions` the state of the host's sessions.
//! - `token` asks the group, and gives hosts keys of a pool that make their own; `catalogue` knows its keys, `objects` shows them as
//!   attributes, `mechanisms` says what of them is served, `generation` reads what kind of key a host wants.
//! - `look_ahead` has what a name server will ask for signed before it does (`docs/adr/0060-look-ahead.md`).
//! - `log` writes why something was refused, and keeps threads out of the host's signals; `refusal` says it to hosts. Where the groups
//!   are, and which keys of a pool are whose, is read by the crate `theta-keypool`.

#![deny(unsafe_op_in_unsafe_fn)]

mod catalogue;
pub mod ffi;
mod generation;
mod log;
mod look_ahead;
mod mechanisms;
mod objects;
mod process;
mod refusal;
mod sessions;
mod token;
