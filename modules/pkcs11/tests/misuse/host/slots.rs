//! Slots and their tokens.

use cryptoki_sys::{
    CK_BBOOL, CK_MECHANISM_INFO, CK_MECHANISM_TYPE, CK_RV, CK_SLOT_ID, CK_SLOT_INFO, CK_TOKEN_INFO, CK_ULONG,
    CKM_EC_KEY_PAIR_GEN, CKM_EDDSA, CKM_SHA256, CKR_ARGUMENTS_BAD, CKR_MECHANISM_INVALID, CKR_OK, CKR_SLOT_ID_INVALID,
    CKR_TOKEN_NOT_PRESENT,
};

use super::{
    Host,
    backing::{LOCKED, POOLED, SLOTS},
    general::check_list,
    memory::{Guarded, long},
};

/// How many mechanisms a token has, and how many a token with a pool.
const MECHANISMS: (usize, usize) = (8, 11);

impl Host<'_> {
    /// A slot that there is, mostly.
    pub(super) fn a_slot(&mut self) -> CK_SLOT_ID {
        self.draw.of(&[POOLED, POOLED, POOLED, LOCKED, LOCKED, 2, SLOTS, CK_SLOT_ID::MAX])
    }

    /// What functions of a slot say before they look at anything else.
    pub(super) fn slot_gate(&self, slot: CK_SLOT_ID, needs_token: bool) -> Option<CK_RV> {
        let wrong = match slot {
            POOLED | LOCKED => None,
            SLOTS.. => Some(CKR_SLOT_ID_INVALID),
            _ if needs_token => Some(CKR_TOKEN_NOT_PRESENT),
            _ => None,
        };
        self.model.gate().or(wrong)
    }

    /// The list of slots, and what is said of one of them.
    pub(super) fn slots(&mut self) {
        match self.draw.below(4) {
            0 => self.slot_list(),
            1 => self.slot_information(),
            2 => self.mechanism_list(),
            _ => self.mechanism_information(),
        }
    }

    fn slot_list(&mut self) {
        let (with_token, room) = (self.draw.of::<CK_BBOOL>(&[0, 1, 255]), self.draw.below(5));
        let (is_null, no_count) = (self.draw.rarely(3), self.draw.rarely(5));
        let mut list = Guarded::room(room * size_of::<CK_SLOT_ID>());
        let mut count = Guarded::of_value(long(room));
        let rv = call!(self, C_GetSlotList(with_token, list.at_or_null(is_null), count.at_or_null(no_count)));
        if let Some(expected) = self.model.gate() {
            assert_eq!(rv, expected, "C_GetSlotList");
            return list.check_untouched();
        }
        let has = if with_token == 0 { 3 } else { 2 };
        check_list("C_GetSlotList", rv, (&list, &count), (has, size_of::<CK_SLOT_ID>()), (is_null, no_count));
    }

    fn slot_information(&mut self) {
        let (slot, is_null) = (self.a_slot(), self.draw.rarely(4));
        let good = if is_null { CKR_ARGUMENTS_BAD } else { CKR_OK };
        let mut info = Guarded::room(size_of::<CK_SLOT_INFO>());
        let rv = call!(self, C_GetSlotInfo(slot, info.at_or_null(is_null)));
        assert_eq!(rv, self.slot_gate(slot, false).unwrap_or(good), "C_GetSlotInfo of {slot}");
        info.check(if rv == CKR_OK { info.len() } else { 0 });

        let mut info = Guarded::room(size_of::<CK_TOKEN_INFO>());
        let rv = call!(self, C_GetTokenInfo(slot, info.at_or_null(is_null)));
        assert_eq!(rv, self.slot_gate(slot, true).unwrap_or(good), "C_GetTokenInfo of {slot}");
        info.check(if rv == CKR_OK { info.len() } else { 0 });
        if rv == CKR_OK {
            let here = self.model.sessions.values().filter(|session| session.slot == slot);
            let (all, writable) = (here.clone().count(), here.filter(|session| session.is_writable).count());
            let told = info.value::<CK_TOKEN_INFO>();
            // The structure may be packed, so that nothing borrows its fields.
            let (sessions, writing): (CK_ULONG, CK_ULONG) = (told.ulSessionCount, told.ulRwSessionCount);
            assert_eq!((sessions, writing), (long(all), long(writable)), "sessions of slot {slot}");
        }
    }

    fn mechanism_list(&mut self) {
        let (slot, room) = (self.a_slot(), self.draw.of(&[0, 1, 7, 8, 10, 11, 12]));
        let (is_null, no_count) = (self.draw.rarely(3), self.draw.rarely(5));
        let mut list = Guarded::room(room * size_of::<CK_MECHANISM_TYPE>());
        let mut count = Guarded::of_value(long(room));
        let rv = call!(self, C_GetMechanismList(slot, list.at_or_null(is_null), count.at_or_null(no_count)));
        if let Some(expected) = self.slot_gate(slot, true) {
            assert_eq!(rv, expected, "C_GetMechanismList of {slot}");
            return list.check_untouched();
        }
        let has = if slot == POOLED { MECHANISMS.1 } else { MECHANISMS.0 };
        let size = size_of::<CK_MECHANISM_TYPE>();
        check_list("C_GetMechanismList", rv, (&list, &count), (has, size), (is_null, no_count));
    }

    fn mechanism_information(&mut self) {
        let (slot, is_null) = (self.a_slot(), self.draw.rarely(4));
        let kind = self.draw.of(&[CKM_EDDSA, CKM_EC_KEY_PAIR_GEN, CKM_SHA256, CK_MECHANISM_TYPE::MAX]);
        let mut info = Guarded::room(size_of::<CK_MECHANISM_INFO>());
        let rv = call!(self, C_GetMechanismInfo(slot, kind, info.at_or_null(is_null)));
        let is_served = kind == CKM_EDDSA || (kind == CKM_EC_KEY_PAIR_GEN && slot == POOLED);
        let expected = match (is_served, is_null) {
            (false, _) => CKR_MECHANISM_INVALID,
            (true, true) => CKR_ARGUMENTS_BAD,
            (true, false) => CKR_OK,
        };
        assert_eq!(rv, self.slot_gate(slot, true).unwrap_or(expected), "C_GetMechanismInfo of {kind:#x} in {slot}");
        info.check(if rv == CKR_OK { info.len() } else { 0 });
    }
}
