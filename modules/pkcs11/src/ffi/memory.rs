//! Memory of the host's: what is read there, what is written there, and how much of it at most.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
};

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_BYTE, CK_MECHANISM, CK_RV, CK_ULONG, CK_UNAVAILABLE_INFORMATION, CKR_ARGUMENTS_BAD,
    CKR_BUFFER_TOO_SMALL, CKR_GENERAL_ERROR, CKR_OK,
};

use crate::{
    mechanisms::Mechanism,
    objects::Attribute,
    refusal::{Outcome, Refusal},
};

/// The most attributes in a template.
const MOST_ATTRIBUTES: usize = 256;
/// The longest attribute, and the longest parameters of a mechanism, in bytes.
const MOST_ATTRIBUTE: usize = 64 << 10;

/// Runs a call.
pub(super) fn call(work: impl FnOnce() -> Outcome<()>) -> CK_RV {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => CKR_OK,
        Ok(Err(Refusal(code))) => code,
        Err(_) => CKR_GENERAL_ERROR,
    }
}

/// Copies a structure of the host's.
///
/// # Safety
/// `at` is null or can be read.
pub(super) unsafe fn read<T: Copy>(at: *const T) -> Outcome<T> {
    if at.is_null() {
        return Err(Refusal(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: the caller says that it can be read; the types that are read here have no values that bytes could not have.
    Ok(unsafe { at.read_unaligned() })
}

/// Writes a structure of the host's.
///
/// # Safety
/// `at` is null or can be written.
pub(super) unsafe fn write<T>(at: *mut T, value: T) -> Outcome<()> {
    if at.is_null() {
        return Err(Refusal(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: the caller says that it can be written.
    unsafe { at.write_unaligned(value) };
    Ok(())
}

/// Bytes of the host's, `most` at most; `too_long` if there are more. None may be null.
///
/// # Safety
/// `at` is null or has `len` bytes that nobody changes while the slice is used.
pub(super) unsafe fn bytes<'a>(at: *const CK_BYTE, len: CK_ULONG, most: usize, too_long: CK_RV) -> Outcome<&'a [u8]> {
    let len = usize::try_from(len).ok().filter(|len| *len <= most).ok_or(Refusal(too_long))?;
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Refusal(CKR_ARGUMENTS_BAD)),
        // SAFETY: the caller says that there are so many bytes, and that nobody changes them.
        (false, _) => Ok(unsafe { slice::from_raw_parts(at, len) }),
    }
}

/// Copies the attributes of a template.
///
/// # Safety
/// `at` is null or has `count` attributes, each of whose values is null or has its length in bytes.
pub(super) unsafe fn template(at: *const CK_ATTRIBUTE, count: CK_ULONG) -> Outcome<Vec<Attribute>> {
    let mut attributes = Vec::new();
    for place in 0..checked_count(count)? {
        // SAFETY: `place` is below the number of attributes that the caller vouches for.
        let CK_ATTRIBUTE { type_, pValue, ulValueLen } = unsafe { read(offset(at, place)) }?;
        // SAFETY: the caller vouches for the value's length, too.
        let value = unsafe { bytes(pValue.cast(), ulValueLen, MOST_ATTRIBUTE, CKR_ARGUMENTS_BAD) }?.to_vec();
        attributes.push(Attribute { kind: type_, value });
    }
    Ok(attributes)
}

pub(super) fn checked_count(count: CK_ULONG) -> Outcome<usize> {
    usize::try_from(count).ok().filter(|count| *count <= MOST_ATTRIBUTES).ok_or(Refusal(CKR_ARGUMENTS_BAD))
}

/// The element of an array at this place; null for a null array.
pub(super) fn offset<T>(at: *const T, place: usize) -> *const T {
    if at.is_null() { at } else { at.wrapping_add(place) }
}

/// Copies a mechanism; `None` if the host gives none.
///
/// # Safety
/// `at` is null or a mechanism, whose parameters are null or have their length in bytes.
pub(super) unsafe fn mechanism(at: *const CK_MECHANISM) -> Outcome<Option<Mechanism>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says that it can be read.
    let CK_MECHANISM { mechanism: kind, pParameter, ulParameterLen } = unsafe { read(at) }?;
    // SAFETY: the caller vouches for the length of the parameters.
    let parameters = unsafe { bytes(pParameter.cast(), ulParameterLen, MOST_ATTRIBUTE, CKR_ARGUMENTS_BAD) }?.to_vec();
    Ok(Some(Mechanism { kind, parameters }))
}

pub(super) fn long(number: usize) -> CK_ULONG {
    CK_ULONG::try_from(number).unwrap_or(CK_UNAVAILABLE_INFORMATION)
}

/// Gives a list by the convention of PKCS#11 (2.40 base, section 5.2): its length alone if there is no place, and an error if the place
/// is too small.
///
/// # Safety
/// `count` is null or can be read and written, and `at` is null or has as many places as it says.
pub(super) unsafe fn give<T: Copy>(items: &[T], at: *mut T, count: *mut CK_ULONG) -> Outcome<()> {
    // SAFETY: as the caller says.
    let room = unsafe { read(count) }?;
    // SAFETY: as the caller says.
    unsafe { write(count, long(items.len())) }?;
    if at.is_null() {
        return Ok(());
    }
    if usize::try_from(room).is_ok_and(|room| room < items.len()) {
        return Err(Refusal(CKR_BUFFER_TOO_SMALL));
    }
    // SAFETY: there is room for all items, by the caller's word; they are ours, so that the two do not overlap. Bytes have no
    // alignment, as whatever the host calls an array of T may have none.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr().cast::<u8>(), at.cast::<u8>(), size_of_val(items)) };
    Ok(())
}

/// A text in a field of fixed length, padded with blanks.
pub(super) fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    field.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    field
}
