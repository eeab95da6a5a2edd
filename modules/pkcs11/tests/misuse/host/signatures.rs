//! Signatures: none is ever made, since no node can be reached, and only known ones verify.

use std::ptr;

use cryptoki_sys::{
    CK_MECHANISM_TYPE, CK_RV, CK_SESSION_HANDLE, CK_ULONG, CKM_ECDSA, CKM_ECDSA_SHA256, CKM_EDDSA, CKM_RSA_PKCS,
    CKM_RSA_PKCS_PSS, CKM_SHA256, CKM_SHA256_RSA_PKCS, CKO_PUBLIC_KEY, CKR_ARGUMENTS_BAD, CKR_BUFFER_TOO_SMALL,
    CKR_DATA_INVALID, CKR_DATA_LEN_RANGE, CKR_DEVICE_ERROR, CKR_KEY_FUNCTION_NOT_PERMITTED, CKR_KEY_HANDLE_INVALID,
    CKR_KEY_TYPE_INCONSISTENT, CKR_MECHANISM_INVALID, CKR_MECHANISM_PARAM_INVALID, CKR_OK, CKR_OPERATION_ACTIVE,
    CKR_OPERATION_NOT_INITIALIZED, CKR_SIGNATURE_INVALID, CKR_SIGNATURE_LEN_RANGE,
};

use super::{
    Host,
    draw::ABSURD,
    memory::{Guarded, Named, long},
    model::{Begun, Standing},
    templates::Data,
};

/// Mechanisms that keys serve, and others.
const KINDS: [CK_MECHANISM_TYPE; 9] = [
    CKM_EDDSA,
    CKM_ECDSA,
    CKM_ECDSA_SHA256,
    CKM_RSA_PKCS,
    CKM_SHA256_RSA_PKCS,
    CKM_RSA_PKCS_PSS,
    CKM_EDDSA,
    CKM_SHA256,
    CK_MECHANISM_TYPE::MAX,
];
/// More room than any signature takes, in bytes.
const ENOUGH: usize = 1024;

/// Which of the two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Signing,
    Verifying,
}

impl Host<'_> {
    fn begun(&mut self, session: CK_SESSION_HANDLE, operation: Operation) -> &mut Option<Begun> {
        let session = self.model.session(session);
        match operation {
            Operation::Signing => &mut session.signing,
            Operation::Verifying => &mut session.verifying,
        }
    }

    /// `C_SignInit`.
    pub(super) fn sign_begin(&mut self) {
        self.operation_begin(Operation::Signing);
    }

    /// `C_VerifyInit`.
    pub(super) fn verify_begin(&mut self) {
        self.operation_begin(Operation::Verifying);
    }

    fn operation_begin(&mut self, operation: Operation) {
        let session = self.a_session();
        let (key, standing) = self.an_object(session);
        let (mut named, is_bad) = self.name_one_of(&KINDS);
        let is_null = self.draw.rarely(10);
        let at = named.at_or_null(is_null);
        let rv = match operation {
            Operation::Signing => call!(self, C_SignInit(session, at, key)),
            Operation::Verifying => call!(self, C_VerifyInit(session, at, key)),
        };
        named.check();
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "{operation:?} begins");
        }
        let begun = self.begun(session, operation);
        let expected: &[CK_RV] = match standing {
            // Without a mechanism it ends what was begun.
            _ if is_null => &[CKR_OK],
            _ if is_bad => &[CKR_ARGUMENTS_BAD],
            _ if begun.is_some() => &[CKR_OPERATION_ACTIVE],
            Standing::Destroyed | Standing::Wrong => &[CKR_KEY_HANDLE_INVALID],
            Standing::Good => &[
                CKR_OK,
                CKR_KEY_FUNCTION_NOT_PERMITTED,
                CKR_KEY_TYPE_INCONSISTENT,
                CKR_MECHANISM_INVALID,
                CKR_MECHANISM_PARAM_INVALID,
            ],
        };
        assert!(expected.contains(&rv), "{operation:?} begins: {rv:#x}, not one of {expected:x?}");
        match rv {
            CKR_OK if is_null => *begun = None,
            CKR_OK => *begun = Some(Begun::default()),
            _ => {}
        }
    }

    /// `C_SignUpdate`.
    pub(super) fn sign_part(&mut self) {
        self.operation_part(Operation::Signing);
    }

    /// `C_VerifyUpdate`.
    pub(super) fn verify_part(&mut self) {
        self.operation_part(Operation::Verifying);
    }

    fn operation_part(&mut self, operation: Operation) {
        let (session, mut part) = (self.a_session(), self.data());
        let (at, said) = (part.at(), part.said);
        let rv = match operation {
            Operation::Signing => call!(self, C_SignUpdate(session, at, said)),
            Operation::Verifying => call!(self, C_VerifyUpdate(session, at, said)),
        };
        part.check();
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "{operation:?} goes on");
        }
        let begun = self.begun(session, operation);
        let expected = match (part.refusal, begun.is_some()) {
            (Some(refusal), _) => refusal,
            (None, false) => CKR_OPERATION_NOT_INITIALIZED,
            (None, true) => CKR_OK,
        };
        assert_eq!(rv, expected, "{operation:?} goes on");
        // A part that is not taken ends the operation: nothing is signed that lacks it.
        *begun = begun.take().filter(|_| rv == CKR_OK).map(|begun| Begun { in_parts: true, ..begun });
    }

    /// `C_Sign`.
    pub(super) fn sign_whole(&mut self) {
        let data = self.data();
        self.sign(Some(data));
    }

    /// `C_SignFinal`.
    pub(super) fn sign_end(&mut self) {
        self.sign(None);
    }

    /// Both, with no room, too little, or enough.
    fn sign(&mut self, mut data: Option<Data>) {
        let (session, is_null, no_len) = (self.a_session(), self.draw.rarely(4), self.draw.rarely(10));
        let short = self.draw.of(&[ENOUGH, 0, 1, 8, 63]);
        // What waits for nodes takes time.
        let size = if self.backing.waits == 0 { short % ENOUGH } else { short };
        let (mut room, mut len) = (Guarded::room(size), Guarded::of_value(long(size)));
        let (at, len_at) = (room.at_or_null(is_null), len.at_or_null(no_len));
        let rv = match &mut data {
            Some(data) => call!(self, C_Sign(session, data.at(), data.said, at, len_at)),
            None => call!(self, C_SignFinal(session, at, len_at)),
        };
        data.iter().for_each(Data::check);
        room.check_untouched();
        len.check(len.len());
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "a signature");
        }
        let said = len.value::<CK_ULONG>();
        let begun = self.model.session(session).signing.take();
        let goes_on = begun.is_some() && !no_len && (is_null || size < ENOUGH);
        if !goes_on {
            return self.check_no_signature((rv, said, size), begun.as_ref(), (data.as_ref(), no_len));
        }
        let begun = begun.unwrap_or_default();
        // It tells the length, and what was begun goes on.
        assert_eq!(rv, if is_null { CKR_OK } else { CKR_BUFFER_TOO_SMALL }, "the length of a signature");
        assert!((64..=512).contains(&said) && begun.needed.is_none_or(|needed| needed == said), "a length of {said}");
        self.model.session(session).signing = Some(Begun { needed: Some(said), ..begun });
    }

    /// There was room for a signature, or nothing was begun, or there was no length: it is over.
    fn check_no_signature(
        &mut self,
        (rv, said, size): (CK_RV, CK_ULONG, usize),
        begun: Option<&Begun>,
        (data, no_len): (Option<&Data>, bool),
    ) {
        assert_eq!(said, long(size), "a length without a signature");
        let expected: &[CK_RV] = match (begun, data) {
            (None, _) => &[CKR_OPERATION_NOT_INITIALIZED],
            (Some(_), _) if no_len => &[CKR_ARGUMENTS_BAD],
            (Some(_), Some(data)) if data.refusal.is_some() => &[CKR_ARGUMENTS_BAD, CKR_DATA_LEN_RANGE],
            (Some(begun), Some(_)) if begun.in_parts => &[CKR_OPERATION_NOT_INITIALIZED],
            _ => &[CKR_DEVICE_ERROR, CKR_DATA_INVALID, CKR_DATA_LEN_RANGE],
        };
        assert!(expected.contains(&rv), "a signature: {rv:#x}, not one of {expected:x?}");
        if rv == CKR_DEVICE_ERROR {
            self.backing.waits -= 1;
        }
    }

    /// `C_Verify`.
    pub(super) fn verify_whole(&mut self) {
        let data = self.data();
        self.verify(Some(data));
    }

    /// `C_VerifyFinal`.
    pub(super) fn verify_end(&mut self) {
        self.verify(None);
    }

    fn verify(&mut self, mut data: Option<Data>) {
        let session = self.a_session();
        let known = self.draw.below(self.backing.known.len());
        let bytes = match self.draw.below(4) {
            0 => self.backing.known[known].signature.clone(),
            1 => vec![1; 64],
            2 => vec![0; 256],
            _ => self.draw.some(70),
        };
        let (is_null, is_absurd) = (self.draw.rarely(10), self.draw.rarely(10));
        let said = if is_absurd { self.draw.of(&ABSURD) } else { long(bytes.len()) };
        let mut signature = Guarded::of(&bytes);
        let at = signature.at_or_null(is_null);
        let rv = match &mut data {
            Some(data) => call!(self, C_Verify(session, data.at(), data.said, at, said)),
            None => call!(self, C_VerifyFinal(session, at, said)),
        };
        data.iter().for_each(Data::check);
        signature.check(signature.len());
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "a signature is verified");
        }
        let refusal = data.as_ref().and_then(|data| data.refusal).or(match said {
            _ if is_absurd => Some(CKR_SIGNATURE_LEN_RANGE),
            1.. if is_null => Some(CKR_ARGUMENTS_BAD),
            _ => None,
        });
        let verified = [CKR_OK, CKR_SIGNATURE_INVALID, CKR_SIGNATURE_LEN_RANGE, CKR_DATA_INVALID, CKR_DATA_LEN_RANGE];
        // However it ends, it is over.
        match (refusal, self.model.session(session).verifying.take()) {
            (Some(refusal), _) => assert_eq!(rv, refusal, "a signature is verified"),
            (None, None) => assert_eq!(rv, CKR_OPERATION_NOT_INITIALIZED, "a signature is verified"),
            (None, Some(begun)) if begun.in_parts && data.is_some() => assert_eq!(rv, CKR_OPERATION_NOT_INITIALIZED),
            (None, Some(_)) => assert!(verified.contains(&rv), "a signature is verified: {rv:#x}"),
        }
        let is_known = self.backing.known.iter().any(|known| known.signature == bytes);
        assert!(rv != CKR_OK || is_known, "a signature verifies that nobody has made");
    }

    /// A known signature verifies, whole or in parts, and not with another bit.
    pub(super) fn verify_known(&mut self) {
        let (session, place, in_parts) = (self.a_session(), self.draw.below(2), self.draw.rarely(2));
        let (known, bit) = (&self.backing.known[place], self.draw.below(256));
        let (mechanism, label) = (known.mechanism, known.label.as_bytes());
        let is_its = |object: &&super::model::Object| {
            object.class == CKO_PUBLIC_KEY
                && object.label == label
                && self.model.standing(session, object.handle) == Standing::Good
        };
        let Some(key) = self.model.objects.iter().find(is_its).map(|object| object.handle) else { return };
        let (mut message, mut signature) = (Guarded::of(&known.message), Guarded::of(&known.signature));
        let mut damaged = known.signature.clone();
        damaged[bit % 64] ^= 1 << (bit % 8);
        let mut damaged = Guarded::of(&damaged);
        let (len, mut named) = (long(message.len()), Named::new(mechanism, None, 0));
        assert_eq!(call!(self, C_VerifyInit(session, ptr::null_mut(), 0)), CKR_OK);
        for (signature, expected) in [(&mut damaged, CKR_SIGNATURE_INVALID), (&mut signature, CKR_OK)] {
            assert_eq!(call!(self, C_VerifyInit(session, named.at_or_null(false), key)), CKR_OK);
            let (at, said) = (signature.at(), long(signature.len()));
            let rv = if in_parts {
                assert_eq!(call!(self, C_VerifyUpdate(session, message.at(), len)), CKR_OK);
                call!(self, C_VerifyFinal(session, at, said))
            } else {
                call!(self, C_Verify(session, message.at(), len, at, said))
            };
            assert_eq!(rv, expected, "a known signature of mechanism {mechanism:#x}");
        }
        self.model.session(session).verifying = None;
    }
}
