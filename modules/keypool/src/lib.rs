//! What the PKCS#11 module and `theta pkcs11 pool` both read and write on the machine of a host.
//!
//! Hosts that make their own keys get keys that were made before: of a pool, which is all keys of a group with names of one form
//! ([`Prefix`]). A key of such a name that is shared otherwise than
//! the group shares its own is not given ([`Members`]). Which of them has been given to a host, and under which `CKA_ID` and label the host knows it, stands in a file of this
//! machine ([`BindingsFile`]); no node knows it. `docs/adr/0052-pkcs11-module.md` says why.

mod bindings;
mod config;
mod file;
mod prefix;
mod security;
mod sharing;

pub use self::{
    bindings::{Binding, Bindings, Shown, State},
    config::{Config, ConfigError, LABEL, LogTo, Pin, PoolConfig, TokenConfig, check_label, shown_label},
    file::{BindingsError, BindingsFile, Locked, Stamp},
    prefix::{Prefix, PrefixError, SUITES},
    security::{Security, SecurityError},
    sharing::{Members, NoSharing, Sharing, Told, Unfit},
};
