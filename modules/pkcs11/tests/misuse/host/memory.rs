//! Memory of the host's with marks before and behind it, which nobody may touch.
//!
//! It begins at an odd address, since the module makes no demand on alignment.

use std::{os::raw::c_void, ptr};

use cryptoki_sys::{CK_ATTRIBUTE, CK_ATTRIBUTE_TYPE, CK_MECHANISM, CK_MECHANISM_TYPE, CK_ULONG};

/// How many bytes of marks are on each side.
const GUARD: usize = 61;
/// What marks are, and room that nobody has written.
const MARK: u8 = 0xa5;

/// Some bytes between marks.
pub(crate) struct Guarded {
    all: Vec<u8>,
    len: usize,
}

pub(crate) fn long(len: usize) -> CK_ULONG {
    CK_ULONG::try_from(len).unwrap()
}

impl Guarded {
    /// These bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let guard = [MARK; GUARD];
        Self { all: [&guard[..], bytes, &guard[..]].concat(), len: bytes.len() }
    }

    /// Room for so many bytes.
    pub(crate) fn room(len: usize) -> Self {
        Self::of(&vec![MARK; len])
    }

    /// A structure.
    pub(crate) fn of_value<T: Copy>(value: T) -> Self {
        let mut made = Self::room(size_of::<T>());
        // SAFETY: there is room for the value.
        unsafe { made.at::<T>().write_unaligned(value) };
        made
    }

    /// Where it begins.
    pub(crate) fn at<T>(&mut self) -> *mut T {
        self.all[GUARD..].as_mut_ptr().cast()
    }

    /// The same, or null.
    pub(crate) fn at_or_null<T>(&mut self, is_null: bool) -> *mut T {
        if is_null { ptr::null_mut() } else { self.at() }
    }

    /// The structure that stands there.
    pub(crate) fn value<T: Copy>(&self) -> T {
        assert!(size_of::<T>() <= self.len);
        // SAFETY: there are so many bytes, and the structures of PKCS#11 have no values that bytes could not have.
        unsafe { self.all[GUARD..].as_ptr().cast::<T>().read_unaligned() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.all[GUARD..GUARD + self.len]
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Nothing was written before it, and nothing behind this many of its bytes.
    #[track_caller]
    pub(crate) fn check(&self, written: usize) {
        let (before, rest) = self.all.split_at(GUARD);
        assert!(before.iter().all(|byte| *byte == MARK), "something was written before a buffer");
        assert!(rest[written..].iter().all(|byte| *byte == MARK), "something was written behind {written} bytes");
    }

    /// Nothing was written at all.
    #[track_caller]
    pub(crate) fn check_untouched(&self) {
        self.check(0);
    }
}

/// One attribute as a host gives it: its kind, its value or null, and what it says of the length.
pub(crate) type Given = (CK_ATTRIBUTE_TYPE, Option<Guarded>, CK_ULONG);

/// A template.
pub(crate) struct Template {
    values: Vec<Option<Guarded>>,
    array: Guarded,
}

impl Template {
    pub(crate) fn new(attributes: Vec<Given>) -> Self {
        let mut array = Guarded::room(attributes.len() * size_of::<CK_ATTRIBUTE>());
        let mut values = Vec::new();
        for (place, (type_, mut value, len)) in attributes.into_iter().enumerate() {
            let at = value.as_mut().map_or(ptr::null_mut(), Guarded::at::<c_void>);
            let attribute = CK_ATTRIBUTE { type_, pValue: at, ulValueLen: len };
            // SAFETY: the array has room for all attributes.
            unsafe { array.at::<CK_ATTRIBUTE>().add(place).write_unaligned(attribute) };
            values.push(value);
        }
        Self { values, array }
    }

    pub(crate) fn at(&mut self) -> *mut CK_ATTRIBUTE {
        self.array.at()
    }

    pub(crate) fn count(&self) -> CK_ULONG {
        long(self.values.len())
    }

    /// The values, and the attributes as they are now.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&Option<Guarded>, CK_ATTRIBUTE)> {
        let attribute = move |place: usize| {
            let bytes = &self.array.bytes()[place * size_of::<CK_ATTRIBUTE>()..];
            // SAFETY: so many attributes were written there.
            unsafe { bytes.as_ptr().cast::<CK_ATTRIBUTE>().read_unaligned() }
        };
        self.values.iter().enumerate().map(move |(place, value)| (value, attribute(place)))
    }

    /// Nothing was written around it, and nothing around its values.
    #[track_caller]
    pub(crate) fn check(&self) {
        self.array.check(self.array.len());
        self.values.iter().flatten().for_each(|value| value.check(value.len()));
    }
}

/// A mechanism as a host gives it.
pub(crate) struct Named {
    parameters: Option<Guarded>,
    mechanism: Guarded,
}

impl Named {
    pub(crate) fn new(mechanism: CK_MECHANISM_TYPE, mut parameters: Option<Guarded>, len: CK_ULONG) -> Self {
        let at = parameters.as_mut().map_or(ptr::null_mut(), Guarded::at::<c_void>);
        let mechanism = CK_MECHANISM { mechanism, pParameter: at, ulParameterLen: len };
        Self { parameters, mechanism: Guarded::of_value(mechanism) }
    }

    pub(crate) fn at_or_null(&mut self, is_null: bool) -> *mut CK_MECHANISM {
        self.mechanism.at_or_null(is_null)
    }

    #[track_caller]
    pub(crate) fn check(&self) {
        self.mechanism.check(self.mechanism.len());
        self.parameters.iter().for_each(|parameters| parameters.check(parameters.len()));
    }
}
