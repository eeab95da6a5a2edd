//! Objects: found, read, made, changed and destroyed.

use std::{collections::BTreeSet, ptr};

use cryptoki_sys::{
    CK_ATTRIBUTE_TYPE, CK_OBJECT_CLASS, CK_OBJECT_HANDLE, CK_SESSION_HANDLE, CK_ULONG, CK_UNAVAILABLE_INFORMATION,
    CKA_CLASS, CKA_EC_POINT, CKA_EXTRACTABLE, CKA_ID, CKA_KEY_TYPE, CKA_LABEL, CKA_MODULUS, CKA_PUBLIC_KEY_INFO,
    CKA_SENSITIVE, CKA_SIGN, CKA_TOKEN, CKA_VALUE, CKK_EC, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKR_ARGUMENTS_BAD,
    CKR_ATTRIBUTE_SENSITIVE, CKR_ATTRIBUTE_TYPE_INVALID, CKR_BUFFER_TOO_SMALL, CKR_OBJECT_HANDLE_INVALID, CKR_OK,
    CKR_OPERATION_ACTIVE, CKR_OPERATION_NOT_INITIALIZED,
};

use super::{
    Host, MOST_OBJECTS,
    draw::ABSURD,
    memory::{Guarded, Template, long},
    model::{Object, Standing},
};

/// What hosts ask objects for; the last one is nothing.
const KINDS: [CK_ATTRIBUTE_TYPE; 13] = [
    CKA_CLASS,
    CKA_LABEL,
    CKA_ID,
    CKA_TOKEN,
    CKA_KEY_TYPE,
    CKA_EC_POINT,
    CKA_MODULUS,
    CKA_PUBLIC_KEY_INFO,
    CKA_VALUE,
    CKA_SIGN,
    CKA_SENSITIVE,
    CKA_EXTRACTABLE,
    CK_ATTRIBUTE_TYPE::MAX,
];

pub(super) type Attributes = Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>;

pub(super) fn number(value: CK_ULONG) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

impl Host<'_> {
    /// Looks for all objects, and remembers those that are new. None of them may be destroyed.
    pub(super) fn look_at_all(&mut self, session: CK_SESSION_HANDLE) {
        if std::mem::take(&mut self.model.session(session).finding) {
            assert_eq!(call!(self, C_FindObjectsFinal(session)), CKR_OK);
        }
        assert_eq!(call!(self, C_FindObjectsInit(session, ptr::null_mut(), 0)), CKR_OK);
        let slot = self.model.session(session).slot;
        let made = self.model.objects.iter().filter(|object| object.slot == slot && object.of.is_some());
        let mut made: BTreeSet<_> = made.map(|object| object.handle).collect();
        loop {
            let (mut list, mut count) = (Guarded::room(size_of::<[CK_ULONG; 8]>()), Guarded::of_value::<CK_ULONG>(77));
            assert_eq!(call!(self, C_FindObjects(session, list.at(), 8, count.at())), CKR_OK);
            let found = check_found((&list, &count), 8);
            if found.is_empty() {
                break;
            }
            for handle in found {
                made.remove(&handle);
                let destroyed = self.model.destroyed.iter().any(|object| object.handle == handle);
                assert!(!destroyed && !self.model.stale.contains(&handle), "the object {handle} is found again");
                let is_known = self.model.objects.iter().any(|object| object.handle == handle);
                if !is_known && self.model.objects.len() < MOST_OBJECTS {
                    let (class, label) = self.class_and_label(session, handle);
                    self.model.objects.push(Object { handle, slot, of: None, class, label });
                }
            }
        }
        assert_eq!(made, BTreeSet::new(), "what one session has made another one finds");
        assert_eq!(call!(self, C_FindObjectsFinal(session)), CKR_OK);
    }

    fn class_and_label(&mut self, session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) -> (CK_OBJECT_CLASS, Vec<u8>) {
        let room = |kind, len| (kind, Some(Guarded::room(len)), long(len));
        let mut asked = Template::new(vec![room(CKA_CLASS, size_of::<CK_OBJECT_CLASS>()), room(CKA_LABEL, 1024)]);
        assert_eq!(call!(self, C_GetAttributeValue(session, object, asked.at(), 2)), CKR_OK);
        let told: Vec<Vec<u8>> = asked
            .attributes()
            .map(|(value, attribute)| {
                let len = usize::try_from(attribute.ulValueLen).unwrap();
                value.as_ref().unwrap().bytes()[..len].to_vec()
            })
            .collect();
        (CK_OBJECT_CLASS::from_ne_bytes(told[0].as_slice().try_into().unwrap()), told[1].clone())
    }

    /// `C_FindObjectsInit`.
    pub(super) fn find_begin(&mut self) {
        let session = self.a_session();
        let attributes: Attributes = match self.draw.below(6) {
            0 => Vec::new(),
            1 => vec![(CKA_CLASS, number(self.draw.of(&[CKO_PUBLIC_KEY, CKO_PRIVATE_KEY, 77])))],
            2 => vec![(CKA_LABEL, b"gold".to_vec()), (CKA_TOKEN, vec![1])],
            3 => vec![(CKA_ID, vec![1]), (CKA_CLASS, number(CKO_PRIVATE_KEY))],
            4 => (0..self.draw.below(40)).map(|_| (self.draw.of(&KINDS), self.draw.some(3))).collect(),
            _ => vec![(CKA_KEY_TYPE, number(CKK_EC))],
        };
        let mut offered = self.offer(&attributes);
        let rv = call!(self, C_FindObjectsInit(session, offered.at(), offered.count));
        offered.template.check();
        let expected = self.model.session_gate(session).unwrap_or_else(|| match self.model.session(session).finding {
            _ if offered.is_bad => CKR_ARGUMENTS_BAD,
            true => CKR_OPERATION_ACTIVE,
            false => CKR_OK,
        });
        assert_eq!(rv, expected, "C_FindObjectsInit");
        if rv == CKR_OK {
            self.model.session(session).finding = true;
        }
    }

    /// `C_FindObjects`.
    pub(super) fn find_more(&mut self) {
        let (session, room) = (self.a_session(), self.draw.of(&[0, 1, 3, 30]));
        let (no_list, no_count) = (self.draw.rarely(8), self.draw.rarely(8));
        let (mut list, mut count) = (Guarded::room(room * size_of::<CK_ULONG>()), Guarded::of_value::<CK_ULONG>(77));
        let (at, count_at) = (list.at_or_null(no_list), count.at_or_null(no_count));
        let rv = call!(self, C_FindObjects(session, at, long(room), count_at));
        let expected = self.model.session_gate(session).unwrap_or_else(|| match self.model.session(session).finding {
            _ if no_list || no_count => CKR_ARGUMENTS_BAD,
            true => CKR_OK,
            false => CKR_OPERATION_NOT_INITIALIZED,
        });
        assert_eq!(rv, expected, "C_FindObjects");
        if rv == CKR_OK {
            check_found((&list, &count), room);
        } else {
            list.check_untouched();
            assert_eq!(count.value::<CK_ULONG>(), 77);
        }
    }

    /// `C_FindObjectsFinal`.
    pub(super) fn find_end(&mut self) {
        let session = self.a_session();
        let rv = call!(self, C_FindObjectsFinal(session));
        let expected = self.model.session_gate(session).unwrap_or_else(|| {
            let was_finding = std::mem::take(&mut self.model.session(session).finding);
            if was_finding { CKR_OK } else { CKR_OPERATION_NOT_INITIALIZED }
        });
        assert_eq!(rv, expected, "C_FindObjectsFinal");
    }

    /// `C_GetAttributeValue`, with room for values that is too short, or not there.
    pub(super) fn read_attributes(&mut self) {
        let session = self.a_session();
        let (object, standing) = self.an_object(session);
        let asked = (0..self.draw.below(6)).map(|_| {
            let (kind, len) = (self.draw.of(&KINDS), self.draw.of(&[600, 0, 1, 7, 8, 20, 35, 64]));
            if self.draw.rarely(4) {
                (kind, None, self.draw.of(&ABSURD))
            } else {
                (kind, Some(Guarded::room(len)), long(len))
            }
        });
        let mut template = Template::new(asked.collect());
        let (is_null, is_absurd) = (self.draw.rarely(12), self.draw.rarely(12));
        let count = if is_absurd { self.draw.of(&ABSURD) } else { template.count() };
        let (before, at): (Vec<_>, _) = (template.attributes().map(|(_, it)| it).collect(), template.at());
        let rv = call!(self, C_GetAttributeValue(session, object, if is_null { ptr::null_mut() } else { at }, count));
        let refusal = self.model.session_gate(session).or(match standing {
            Standing::Destroyed | Standing::Wrong => Some(CKR_OBJECT_HANDLE_INVALID),
            Standing::Good => (is_absurd || (is_null && count > 0)).then_some(CKR_ARGUMENTS_BAD),
        });
        if let Some(expected) = refusal {
            assert_eq!(rv, expected, "C_GetAttributeValue");
        } else {
            let some = [CKR_OK, CKR_ATTRIBUTE_SENSITIVE, CKR_ATTRIBUTE_TYPE_INVALID, CKR_BUFFER_TOO_SMALL];
            assert!(some.contains(&rv), "C_GetAttributeValue answered {rv:#x}");
        }
        let mut all_given = true;
        for ((value, after), before) in template.attributes().zip(before) {
            let (kind, len) = (after.type_, after.ulValueLen);
            assert_eq!((kind, after.pValue), (before.type_, before.pValue));
            let is_given = len != CK_UNAVAILABLE_INFORMATION && refusal.is_none();
            all_given &= is_given;
            let Some(value) = value else { continue };
            let written = if is_given { usize::try_from(len).unwrap() } else { 0 };
            assert!(written <= value.len(), "attribute {kind:#x} is longer than its room");
            value.check(written);
        }
        assert!(refusal.is_some() || (rv == CKR_OK) == all_given, "{rv:#x}, and all are given: {all_given}");
    }

    /// `C_GetObjectSize`.
    pub(super) fn object_size(&mut self) {
        let session = self.a_session();
        let (object, standing) = self.an_object(session);
        let is_null = self.draw.rarely(4);
        let mut size = Guarded::room(size_of::<CK_ULONG>());
        let rv = call!(self, C_GetObjectSize(session, object, size.at_or_null(is_null)));
        let expected = match standing {
            Standing::Good if is_null => CKR_ARGUMENTS_BAD,
            Standing::Good => CKR_OK,
            Standing::Destroyed | Standing::Wrong => CKR_OBJECT_HANDLE_INVALID,
        };
        assert_eq!(rv, self.model.session_gate(session).unwrap_or(expected), "C_GetObjectSize");
        size.check(if rv == CKR_OK { size.len() } else { 0 });
    }
}

/// The handles that were found, of which there is room for so many.
#[track_caller]
fn check_found((list, count): (&Guarded, &Guarded), room: usize) -> Vec<CK_OBJECT_HANDLE> {
    let found = usize::try_from(count.value::<CK_ULONG>()).unwrap();
    assert!(found <= room, "{found} objects, and room for {room}");
    count.check(count.len());
    list.check(found * size_of::<CK_OBJECT_HANDLE>());
    let bytes = list.bytes().chunks_exact(size_of::<CK_OBJECT_HANDLE>()).take(found);
    let handles: Vec<_> = bytes.map(|bytes| CK_OBJECT_HANDLE::from_ne_bytes(bytes.try_into().unwrap())).collect();
    assert!(!handles.contains(&0), "zero is no handle");
    handles
}
