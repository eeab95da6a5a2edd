//! Objects that hosts make, change and destroy.

use cryptoki_sys::{
    CK_BBOOL, CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CK_ULONG, CKA_CLASS, CKA_EC_PARAMS, CKA_EC_POINT,
    CKA_EXTRACTABLE, CKA_ID, CKA_KEY_TYPE, CKA_LABEL, CKA_MODULUS_BITS, CKA_SENSITIVE, CKA_TOKEN, CKK_EC,
    CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_EC_KEY_PAIR_GEN, CKM_EDDSA, CKM_RSA_PKCS_KEY_PAIR_GEN, CKM_SHA256,
    CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKR_ACTION_PROHIBITED, CKR_ARGUMENTS_BAD, CKR_ATTRIBUTE_READ_ONLY,
    CKR_ATTRIBUTE_VALUE_INVALID, CKR_CURVE_NOT_SUPPORTED, CKR_DEVICE_ERROR, CKR_FUNCTION_NOT_SUPPORTED,
    CKR_MECHANISM_INVALID, CKR_MECHANISM_PARAM_INVALID, CKR_OBJECT_HANDLE_INVALID, CKR_OK, CKR_SESSION_READ_ONLY,
    CKR_TEMPLATE_INCOMPLETE, CKR_TEMPLATE_INCONSISTENT,
};

use super::{
    Host,
    backing::{self, POOLED},
    memory::{Guarded, Template, long},
    model::{Object, Standing},
    objects::{Attributes, number},
};

const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

impl Host<'_> {
    /// `C_CreateObject`: a public key of the group, or not.
    pub(super) fn create(&mut self) {
        let (session, is_null) = (self.a_session(), self.draw.rarely(8));
        let (point, is_wrong) = (self.backing.point.clone(), self.draw.rarely(4));
        let class = if is_wrong { CKO_PRIVATE_KEY } else { CKO_PUBLIC_KEY };
        let octets = [&[0x04, 0x41][..], &point[..]].concat();
        let attributes = vec![
            (CKA_CLASS, number(class)),
            (CKA_KEY_TYPE, number(CKK_EC)),
            (CKA_EC_PARAMS, P256.to_vec()),
            (CKA_EC_POINT, if self.draw.rarely(2) { point } else { octets }),
            (CKA_TOKEN, vec![CK_BBOOL::from(self.draw.rarely(6))]),
        ];
        let mut offered = self.offer(&attributes);
        let mut handle = Guarded::room(size_of::<CK_OBJECT_HANDLE>());
        let (at, count) = (offered.at(), offered.count);
        let rv = call!(self, C_CreateObject(session, at, count, handle.at_or_null(is_null)));
        offered.template.check();
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "C_CreateObject");
        }
        let slot = self.model.session(session).slot;
        let no_key = [CKR_TEMPLATE_INCOMPLETE, CKR_TEMPLATE_INCONSISTENT, CKR_ATTRIBUTE_VALUE_INVALID];
        if is_null || offered.is_bad {
            assert_eq!(rv, CKR_ARGUMENTS_BAD, "C_CreateObject");
        } else if rv == CKR_OK {
            assert!(slot == POOLED && !is_wrong, "a public key that is none of the group's");
            let object: CK_OBJECT_HANDLE = handle.value();
            let label = backing::P256.as_bytes().to_vec();
            self.model.objects.push(Object { handle: object, slot, of: Some(session), class: CKO_PUBLIC_KEY, label });
        } else {
            assert!(no_key.contains(&rv), "C_CreateObject answered {rv:#x}");
            let is_good = offered.is_plain && !is_wrong && attributes[4].1 == [0] && slot == POOLED;
            assert!(!is_good, "C_CreateObject answered {rv:#x} to a public key of the group");
        }
        handle.check(if rv == CKR_OK { handle.len() } else { 0 });
    }

    /// `C_DestroyObject`.
    pub(super) fn destroy(&mut self) {
        let session = self.a_session();
        let (handle, standing) = self.an_object(session);
        let rv = call!(self, C_DestroyObject(session, handle));
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "C_DestroyObject");
        }
        let is_writable = self.model.session(session).is_writable;
        let object = self.model.objects.iter().find(|object| object.handle == handle).cloned();
        let expected: &[CK_RV] = match (standing, &object) {
            (Standing::Wrong, _) | (Standing::Good, None) => &[CKR_OBJECT_HANDLE_INVALID],
            // Hosts destroy one of the two objects of a key, and then the other one.
            (Standing::Destroyed, _) => &[CKR_OK],
            (Standing::Good, Some(object)) if object.of.is_some() => &[CKR_OK],
            (Standing::Good, Some(_)) if !is_writable => &[CKR_SESSION_READ_ONLY],
            (Standing::Good, Some(_)) => &[CKR_OK, CKR_ACTION_PROHIBITED],
        };
        assert!(expected.contains(&rv), "C_DestroyObject of {handle}: {rv:#x}, not one of {expected:x?}");
        let Some(object) = object.filter(|_| rv == CKR_OK && standing == Standing::Good) else { return };
        if object.of.is_some() {
            self.model.objects.retain(|known| known.handle != handle);
            self.model.stale.push(handle);
        } else {
            // Its other object may have gone with it: what is left is found again.
            self.backing.is_changed = true;
            self.model.objects.retain(|known| known.of.is_some());
            self.model.destroyed.push(object);
            self.look_at_all(session);
        }
    }

    /// `C_SetAttributeValue`.
    pub(super) fn change(&mut self) {
        let session = self.a_session();
        let (handle, standing) = self.an_object(session);
        let attributes: Attributes = match self.draw.below(6) {
            0 => vec![(CKA_ID, self.draw.some(30))],
            1 => vec![(CKA_LABEL, [&b"new "[..], &self.draw.some(9)].concat()), (CKA_ID, vec![3])],
            2 => vec![(CKA_ID, vec![0; 1025])],
            3 => vec![(CKA_EXTRACTABLE, vec![1])],
            4 => Vec::new(),
            _ => vec![(CKA_TOKEN, vec![1]), (CKA_LABEL, b"new".to_vec())],
        };
        let mut offered = self.offer(&attributes);
        let rv = call!(self, C_SetAttributeValue(session, handle, offered.at(), offered.count));
        offered.template.check();
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "C_SetAttributeValue");
        }
        let expected: &[CK_RV] = match standing {
            _ if offered.is_bad => &[CKR_ARGUMENTS_BAD],
            Standing::Destroyed | Standing::Wrong => &[CKR_OBJECT_HANDLE_INVALID],
            Standing::Good if !self.model.session(session).is_writable => &[CKR_SESSION_READ_ONLY],
            Standing::Good => &[CKR_OK, CKR_ACTION_PROHIBITED, CKR_ATTRIBUTE_READ_ONLY, CKR_ATTRIBUTE_VALUE_INVALID],
        };
        assert!(expected.contains(&rv), "C_SetAttributeValue of {handle}: {rv:#x}, not one of {expected:x?}");
        self.backing.is_changed |= rv == CKR_OK;
    }

    /// Calls an object something else.
    #[allow(dead_code, reason = "the fuzz target makes sequences alone")]
    pub(crate) fn rename(&mut self, session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE, label: &[u8]) -> CK_RV {
        let mut template = Template::new(vec![(CKA_LABEL, Some(Guarded::of(label)), long(label.len()))]);
        call!(self, C_SetAttributeValue(session, object, template.at(), 1))
    }

    /// `C_GenerateKeyPair`: no key is given where no node says which there are.
    pub(super) fn generate(&mut self) {
        let session = self.a_session();
        let kinds = [
            CKM_EC_KEY_PAIR_GEN,
            CKM_EC_EDWARDS_KEY_PAIR_GEN,
            CKM_EDDSA,
            CKM_RSA_PKCS_KEY_PAIR_GEN,
            CKM_SHA256,
            CK_ULONG::MAX,
        ];
        let (mut named, is_bad) = self.name_one_of(&kinds);
        let no_mechanism = self.draw.rarely(12);
        let public = vec![
            (CKA_EC_PARAMS, self.draw.of(&[P256, ED25519, &[6, 5, 0x2b, 0x81, 4, 0, 0x22]]).to_vec()),
            (CKA_MODULUS_BITS, number(self.draw.of(&[2048, 1024, 3072, CK_ULONG::MAX]))),
            (CKA_ID, self.draw.some(20)),
        ];
        let private = vec![(CKA_TOKEN, vec![1]), (CKA_SENSITIVE, vec![1]), (CKA_LABEL, b"made".to_vec())];
        let (mut public, mut private) = (self.offer(&public), self.offer(&private));
        let nulls = (self.draw.rarely(12), self.draw.rarely(12));
        let (mut first, mut second) = (Guarded::room(size_of::<CK_ULONG>()), Guarded::room(size_of::<CK_ULONG>()));
        let (public_at, private_at) = (public.at(), private.at());
        let (first_at, second_at) = (first.at_or_null(nulls.0), second.at_or_null(nulls.1));
        let mechanism = named.at_or_null(no_mechanism);
        let rv = call!(
            self,
            C_GenerateKeyPair(
                session,
                mechanism,
                public_at,
                public.count,
                private_at,
                private.count,
                first_at,
                second_at
            )
        );
        named.check();
        [&public, &private].iter().for_each(|offered| offered.template.check());
        [&first, &second].iter().for_each(|handle| handle.check_untouched());
        if let Some(expected) = self.model.session_gate(session) {
            return assert_eq!(rv, expected, "C_GenerateKeyPair");
        }
        let session = self.model.session(session);
        let no_key = [
            CKR_DEVICE_ERROR,
            CKR_MECHANISM_INVALID,
            CKR_MECHANISM_PARAM_INVALID,
            CKR_TEMPLATE_INCOMPLETE,
            CKR_TEMPLATE_INCONSISTENT,
            CKR_ATTRIBUTE_VALUE_INVALID,
            CKR_CURVE_NOT_SUPPORTED,
        ];
        let expected: &[CK_RV] = match session.slot {
            _ if no_mechanism || is_bad || nulls.0 || nulls.1 || public.is_bad || private.is_bad => {
                &[CKR_ARGUMENTS_BAD]
            }
            POOLED if !session.is_writable => &[CKR_SESSION_READ_ONLY],
            POOLED => &no_key,
            _ => &[CKR_FUNCTION_NOT_SUPPORTED],
        };
        assert!(expected.contains(&rv), "C_GenerateKeyPair answered {rv:#x}, not one of {expected:x?}");
    }
}
