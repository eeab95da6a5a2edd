//! Against whom a black box is secure.

/// Passive or active security, as a type: values of one never mix with values of the other.
pub trait Security: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Whether it holds against parties that do not follow the protocol.
    const ACTIVE: bool;
}

/// Secure against parties that follow the protocol and share all that they see.
#[derive(Clone, Copy, Debug)]
pub struct Passive;

/// Secure against parties that do whatever they like; honest ones may have to stop.
#[derive(Clone, Copy, Debug)]
pub struct Active;

impl Security for Passive {
    const ACTIVE: bool = false;
}

impl Security for Active {
    const ACTIVE: bool = true;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Passive {}
    impl Sealed for super::Active {}
}
