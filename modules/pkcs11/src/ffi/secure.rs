//! Whether this process has more rights than whoever started it.

/// Whether the system says so: of programs that are set-user-id, and of those whose file has capabilities, which change no number of a user
/// (getauxval(3), `AT_SECURE`).
#[cfg(target_os = "linux")]
pub(crate) fn is_secure() -> bool {
    use std::ffi::c_ulong;
    const AT_SECURE: c_ulong = 23;
    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }
    // SAFETY: it reads what the system has told this process at its start.
    unsafe { getauxval(AT_SECURE) != 0 }
}

/// Other systems tell by numbers of users alone, which are looked at anyhow.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn is_secure() -> bool {
    false
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_has_the_rights_of_whoever_starts_it() {
        assert!(!super::is_secure());
    }
}
