//! Every call to aws-lc's BIGNUM, each behind a safe function of the same meaning. `unsafe` is here and in `bls12_381/ffi.rs`,
//! nowhere else.
//!
//! Three rules make all the calls sound, and each block says which it leans on:
//! - **owned**: pointers come from the owning types below, which hold live objects that no other owner frees; the object that C
//!   writes to comes from a `&mut` or was made a line before, and BIGNUM's functions allow an output to be an input;
//! - **sized**: pointers to bytes come with the length of the slice that they point into;
//! - **checked**: arguments that the C side refuses (an even modulus, an unreduced base, division by zero) are refused before,
//!   so that a call can only fail for want of memory. That aborts the process, as it does in Rust's own collections.

#![allow(unsafe_code, reason = "the one door to the C library; reviewed as a whole")]

use core::alloc::Layout;
use core::cmp::Ordering;
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::alloc::handle_alloc_error;

use aws_lc_sys as c;

/// A non-negative integer, wiped when dropped.
pub(super) struct Bn(NonNull<c::BIGNUM>);

/// Space for intermediate results.
pub(super) struct Scratch(NonNull<c::BN_CTX>);

/// The precomputed values of Montgomery's reduction for an odd modulus.
pub(super) struct Montgomery(NonNull<c::BN_MONT_CTX>);

// SAFETY: a BIGNUM is plain memory; no thread-local state hangs on it.
unsafe impl Send for Bn {}
// SAFETY: functions that take a `const BIGNUM *` only read.
unsafe impl Sync for Bn {}
// SAFETY: plain memory, as above.
unsafe impl Send for Montgomery {}
// SAFETY: functions that take a `const BN_MONT_CTX *` only read; aws-lc shares such contexts between threads itself.
unsafe impl Sync for Montgomery {}

/// A new object of the C library.
fn owned<T>(pointer: *mut T) -> NonNull<T> {
    NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(Layout::new::<c::BIGNUM>()))
}

/// Checks the status of a call that can fail only for want of memory.
fn done(status: c_int) {
    if status != 1 {
        handle_alloc_error(Layout::new::<c::BIGNUM>());
    }
}

impl Drop for Bn {
    fn drop(&mut self) {
        // SAFETY: owned, and never used again.
        unsafe { c::BN_clear_free(self.0.as_ptr()) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: owned, and never used again.
        unsafe { c::BN_CTX_free(self.0.as_ptr()) }
    }
}

impl Drop for Montgomery {
    fn drop(&mut self) {
        // SAFETY: owned, and never used again.
        unsafe { c::BN_MONT_CTX_free(self.0.as_ptr()) }
    }
}

impl Clone for Bn {
    fn clone(&self) -> Self {
        // SAFETY: owned.
        Self(owned(unsafe { c::BN_dup(self.0.as_ptr()) }))
    }
}

impl Scratch {
    pub(super) fn new() -> Self {
        // SAFETY: takes no arguments.
        Self(owned(unsafe { c::BN_CTX_new() }))
    }
}

impl Bn {
    pub(super) fn zero() -> Self {
        // SAFETY: takes no arguments.
        Self(owned(unsafe { c::BN_new() }))
    }

    pub(super) fn from_u64(value: u64) -> Self {
        let out = Self::zero();
        // SAFETY: owned.
        done(unsafe { c::BN_set_u64(out.0.as_ptr(), value) });
        out
    }

    /// As many words as the bytes need, leading zeros included.
    pub(super) fn from_be_bytes(bytes: &[u8]) -> Self {
        // SAFETY: sized; null asks for a new object.
        Self(owned(unsafe { c::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) }))
    }

    /// Fills `out`, big-endian, in time that depends on its length alone; false if the value does not fit.
    pub(super) fn to_be_bytes(&self, out: &mut [u8]) -> bool {
        // SAFETY: owned; sized.
        unsafe { c::BN_bn2bin_padded(out.as_mut_ptr(), out.len(), self.0.as_ptr()) == 1 }
    }

    pub(super) fn wipe(&mut self) {
        // SAFETY: owned.
        unsafe { c::BN_clear(self.0.as_ptr()) }
    }

    pub(super) fn bits(&self) -> u32 {
        // SAFETY: owned.
        unsafe { c::BN_num_bits(self.0.as_ptr()) }
    }

    pub(super) fn bit(&self, position: u32) -> bool {
        // SAFETY: owned; bits beyond the number are zero.
        c_int::try_from(position).is_ok_and(|position| unsafe { c::BN_is_bit_set(self.0.as_ptr(), position) == 1 })
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        // SAFETY: owned.
        unsafe { c::BN_ucmp(self.0.as_ptr(), other.0.as_ptr()) }.cmp(&0)
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let out = Self::zero();
        // SAFETY: owned.
        done(unsafe { c::BN_uadd(out.0.as_ptr(), self.0.as_ptr(), other.0.as_ptr()) });
        out
    }

    pub(super) fn add_assign(&mut self, other: &Self) {
        // SAFETY: owned.
        done(unsafe { c::BN_uadd(self.0.as_ptr(), self.0.as_ptr(), other.0.as_ptr()) });
    }

    /// `None` if the result would be negative.
    pub(super) fn sub(&self, other: &Self) -> Option<Self> {
        if self.compare(other) == Ordering::Less {
            return None;
        }
        let out = Self::zero();
        // SAFETY: owned; checked: not negative.
        done(unsafe { c::BN_usub(out.0.as_ptr(), self.0.as_ptr(), other.0.as_ptr()) });
        Some(out)
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        let (out, scratch) = (Self::zero(), Scratch::new());
        // SAFETY: owned.
        done(unsafe { c::BN_mul(out.0.as_ptr(), self.0.as_ptr(), other.0.as_ptr(), scratch.0.as_ptr()) });
        out
    }

    pub(super) fn mul_word(&mut self, word: u64) {
        // SAFETY: owned.
        done(unsafe { c::BN_mul_word(self.0.as_ptr(), word) });
    }

    pub(super) fn add_word(&mut self, word: u64) {
        // SAFETY: owned.
        done(unsafe { c::BN_add_word(self.0.as_ptr(), word) });
    }

    /// Divides in place and returns the remainder; leaves zero and returns zero for a zero divisor.
    pub(super) fn div_word(&mut self, word: u64) -> u64 {
        if word == 0 {
            self.wipe();
            return 0;
        }
        // SAFETY: owned; checked: the divisor is not zero.
        unsafe { c::BN_div_word(self.0.as_ptr(), word) }
    }

    /// The remainder; zero for a zero divisor.
    pub(super) fn mod_word(&self, word: u64) -> u64 {
        if word == 0 {
            return 0;
        }
        // SAFETY: owned; checked: the divisor is not zero.
        unsafe { c::BN_mod_word(self.0.as_ptr(), word) }
    }

    /// The remainder; zero for a zero divisor.
    pub(super) fn rem(&self, divisor: &Self) -> Self {
        let (out, scratch) = (Self::zero(), Scratch::new());
        if divisor.bits() > 0 {
            // SAFETY: owned; checked: the divisor is not zero.
            done(unsafe { c::BN_nnmod(out.0.as_ptr(), self.0.as_ptr(), divisor.0.as_ptr(), scratch.0.as_ptr()) });
        }
        out
    }

    /// Trial division, then Miller-Rabin with `rounds` random bases. The time depends on the answer, not on the prime. The caller
    /// has checked that the number is no longer than a modulus may be.
    pub(super) fn is_prime(&self, rounds: u16) -> bool {
        let (mut is_prime, scratch) = (0, Scratch::new());
        // SAFETY: owned; the flag is ours; a null callback is none; checked by the caller: a size that the C side takes.
        done(unsafe {
            c::BN_primality_test(
                &raw mut is_prime,
                self.0.as_ptr(),
                c_int::from(rounds),
                scratch.0.as_ptr(),
                1,
                ptr::null_mut(),
            )
        });
        is_prime == 1
    }
}

impl Montgomery {
    /// For an odd modulus above 1; the caller has checked that.
    pub(super) fn new(odd_modulus: &Bn) -> Self {
        let scratch = Scratch::new();
        // SAFETY: owned; checked by the caller, and an even modulus would be a null, not undefined.
        Self(owned(unsafe { c::BN_MONT_CTX_new_consttime(odd_modulus.0.as_ptr(), scratch.0.as_ptr()) }))
    }

    /// a R mod N, for a below N.
    pub(super) fn enter(&self, a: &Bn, scratch: &mut Scratch) -> Bn {
        let out = Bn::zero();
        // SAFETY: owned.
        done(unsafe { c::BN_to_montgomery(out.0.as_ptr(), a.0.as_ptr(), self.0.as_ptr(), scratch.0.as_ptr()) });
        out
    }

    /// a / R mod N.
    pub(super) fn leave(&self, a: &Bn, scratch: &mut Scratch) -> Bn {
        let out = Bn::zero();
        // SAFETY: owned.
        done(unsafe { c::BN_from_montgomery(out.0.as_ptr(), a.0.as_ptr(), self.0.as_ptr(), scratch.0.as_ptr()) });
        out
    }

    /// a b / R mod N.
    pub(super) fn mul(&self, a: &Bn, b: &Bn, scratch: &mut Scratch) -> Bn {
        let out = Bn::zero();
        // SAFETY: owned.
        done(unsafe {
            c::BN_mod_mul_montgomery(out.0.as_ptr(), a.0.as_ptr(), b.0.as_ptr(), self.0.as_ptr(), scratch.0.as_ptr())
        });
        out
    }

    /// a = a b / R mod N.
    pub(super) fn mul_assign(&self, a: &mut Bn, b: &Bn, scratch: &mut Scratch) {
        // SAFETY: owned.
        done(unsafe {
            c::BN_mod_mul_montgomery(a.0.as_ptr(), a.0.as_ptr(), b.0.as_ptr(), self.0.as_ptr(), scratch.0.as_ptr())
        });
    }

    /// a = a^2 / R mod N.
    pub(super) fn square_assign(&self, a: &mut Bn, scratch: &mut Scratch) {
        let a = a.0.as_ptr();
        // SAFETY: owned.
        done(unsafe { c::BN_mod_mul_montgomery(a, a, a, self.0.as_ptr(), scratch.0.as_ptr()) });
    }

    /// base^exponent mod N in time that depends on the number of the exponent's words and on N alone. The base must be
    /// below the modulus, which must be the one that this was made for; the caller has checked both.
    pub(super) fn pow(&self, base: &Bn, exponent: &Bn, modulus: &Bn) -> Bn {
        let (out, scratch) = (Bn::zero(), Scratch::new());
        // SAFETY: owned; checked by the caller, and an unreduced base would be an error, not undefined.
        done(unsafe {
            c::BN_mod_exp_mont_consttime(
                out.0.as_ptr(),
                base.0.as_ptr(),
                exponent.0.as_ptr(),
                modulus.0.as_ptr(),
                scratch.0.as_ptr(),
                self.0.as_ptr(),
            )
        });
        out
    }

    /// Both powers by one call, with the conditions of [`pow`](Self::pow) for each. All numbers must have as many words as the
    /// modulus for the C side to take them together; it takes them one after the other where they have not.
    pub(super) fn pow_pair(&self, powers: [(&Bn, &Bn); 2], modulus: &Bn) -> [Bn; 2] {
        let (out, scratch) = ([Bn::zero(), Bn::zero()], Scratch::new());
        let [(first_base, first_exponent), (second_base, second_exponent)] = powers;
        let [first, second] = &out;
        // SAFETY: owned; checked by the caller, and an unreduced base would be an error, not undefined.
        done(unsafe {
            c::BN_mod_exp_mont_consttime_x2(
                first.0.as_ptr(),
                first_base.0.as_ptr(),
                first_exponent.0.as_ptr(),
                modulus.0.as_ptr(),
                self.0.as_ptr(),
                second.0.as_ptr(),
                second_base.0.as_ptr(),
                second_exponent.0.as_ptr(),
                modulus.0.as_ptr(),
                self.0.as_ptr(),
                scratch.0.as_ptr(),
            )
        });
        out
    }
}
