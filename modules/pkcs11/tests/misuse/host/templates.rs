//! Templates, mechanisms and data as hosts give them, right ones and wrong ones.

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_ATTRIBUTE_TYPE, CK_BYTE, CK_MECHANISM_TYPE, CK_RV, CK_ULONG, CKG_MGF1_SHA256, CKM_SHA256,
    CKR_ARGUMENTS_BAD, CKR_DATA_LEN_RANGE,
};

use super::{
    Host,
    draw::ABSURD,
    memory::{Given, Guarded, Named, Template, long},
};

/// The longest value of an attribute that the module takes, in bytes.
const MOST_VALUE: usize = 64 << 10;
/// What stands before a digest of SHA-256 in a DigestInfo (RFC 8017, section 9.2, note 1).
const DIGEST_INFO: &[u8] =
    &[0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0, 0x04, 0x20];

/// A template on its way to the module.
pub(super) struct Offered {
    pub(super) template: Template,
    pub(super) count: CK_ULONG,
    is_null: bool,
    /// Whether the module has to refuse it, whatever stands in it.
    pub(super) is_bad: bool,
    /// Whether it says what was meant.
    pub(super) is_plain: bool,
}

impl Offered {
    pub(super) fn at(&mut self) -> *mut CK_ATTRIBUTE {
        if self.is_null { std::ptr::null_mut() } else { self.template.at() }
    }
}

/// Data on their way to the module.
pub(super) struct Data {
    pub(super) bytes: Guarded,
    pub(super) said: CK_ULONG,
    is_null: bool,
    /// What the module has to say instead of reading them.
    pub(super) refusal: Option<CK_RV>,
}

impl Data {
    pub(super) fn at(&mut self) -> *mut CK_BYTE {
        self.bytes.at_or_null(self.is_null)
    }

    #[track_caller]
    pub(super) fn check(&self) {
        self.bytes.check(self.bytes.len());
    }
}

impl Host<'_> {
    /// A template with these attributes, or with something wrong.
    pub(super) fn offer(&mut self, attributes: &[(CK_ATTRIBUTE_TYPE, Vec<u8>)]) -> Offered {
        let plain = |(kind, value): &(CK_ATTRIBUTE_TYPE, Vec<u8>)| (*kind, Some(Guarded::of(value)), long(value.len()));
        let mut given: Vec<Given> = attributes.iter().map(plain).collect();
        let (mut is_bad, mut is_plain) = (false, true);
        if !given.is_empty() && self.draw.rarely(3) {
            let place = self.draw.below(given.len());
            (given[place], is_bad) = self.wrong(&attributes[place]);
            is_plain = false;
        }
        let template = Template::new(given);
        let (mut count, mut is_null) = (template.count(), false);
        match self.draw.below(16) {
            13 => (is_null, is_bad) = (true, count > 0),
            14 => (count, is_bad) = (self.draw.of(&ABSURD), true),
            15 => (count, is_bad) = (0, false),
            _ => {}
        }
        is_plain &= !is_null && count == template.count();
        Offered { template, count, is_null, is_bad, is_plain }
    }

    /// An attribute with something wrong, and whether the module has to refuse it unread.
    fn wrong(&mut self, (kind, value): &(CK_ATTRIBUTE_TYPE, Vec<u8>)) -> (Given, bool) {
        let given = |value: &[u8]| (*kind, Some(Guarded::of(value)), long(value.len()));
        match self.draw.below(7) {
            0 => ((*kind, None, long(value.len())), !value.is_empty()),
            1 => ((*kind, None, 0), false),
            2 => ((*kind, Some(Guarded::of(value)), self.draw.of(&ABSURD)), true),
            3 => (given(&value[..self.draw.below(value.len() + 1)]), false),
            4 => (given(&[&value[..], &self.draw.some(9)].concat()), false),
            5 => (given(&vec![1; MOST_VALUE]), false),
            _ => (given(&vec![1; MOST_VALUE + 1]), true),
        }
    }

    /// One of these mechanisms, mostly as it should be; and whether the module has to refuse it unread.
    pub(super) fn name_one_of(&mut self, kinds: &[CK_MECHANISM_TYPE]) -> (Named, bool) {
        let kind = self.draw.of(kinds);
        let numbers = |numbers: [CK_ULONG; 3]| numbers.into_iter().flat_map(CK_ULONG::to_ne_bytes).collect::<Vec<u8>>();
        let parameters = match self.draw.below(12) {
            7 => numbers([CKM_SHA256, CKG_MGF1_SHA256, 32]),
            8 => numbers([0, 0, 0]),
            9 => self.draw.some(40),
            10 => return (Named::new(kind, None, self.draw.of(&[1, 24, CK_ULONG::MAX])), true),
            11 => return (Named::new(kind, Some(Guarded::of(&[0; 24])), self.draw.of(&ABSURD)), true),
            _ => return (Named::new(kind, None, 0), false),
        };
        (Named::new(kind, Some(Guarded::of(&parameters)), long(parameters.len())), false)
    }

    /// Data that are signed, or a part of them.
    pub(super) fn data(&mut self) -> Data {
        let message = self.backing.known[0].message.clone();
        let bytes = match self.draw.below(6) {
            0 => message,
            1 => vec![7; 32],
            2 => [DIGEST_INFO, &[7; 32]].concat(),
            3 => vec![1; 100_000],
            _ => self.draw.some(70),
        };
        let (is_null, is_absurd) = (self.draw.rarely(10), self.draw.rarely(10));
        let said = if is_absurd { self.draw.of(&ABSURD) } else { long(bytes.len()) };
        let refusal = match said {
            _ if is_absurd => Some(CKR_DATA_LEN_RANGE),
            1.. if is_null => Some(CKR_ARGUMENTS_BAD),
            _ => None,
        };
        Data { bytes: Guarded::of(&bytes), said, is_null, refusal }
    }
}
