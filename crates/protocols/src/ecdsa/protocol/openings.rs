//! What a party knows of programs that have failed and are thrown away.

use std::collections::BTreeMap;

use theta_mpc::View;
use theta_rounds::PartyId;

use crate::ecdsa::message::{GaveUp, Reason};

/// The programs that have failed and of which not all is known yet, by attempt.
#[derive(Default)]
pub(super) struct Openings {
    pub(super) open: BTreeMap<u16, Opening>,
    pub(super) opened: u8,
}

impl Openings {
    /// Whether nothing is waited for.
    pub(super) fn are_closed(&self) -> bool {
        self.open.is_empty()
    }
}

/// A program that this party has thrown away.
pub(super) struct Opening {
    pub(super) holders: Vec<PartyId>,
    /// How many presignatures it would have made.
    pub(super) count: u16,
    pub(super) phase: &'static str,
    pub(super) gave_up: BTreeMap<PartyId, GaveUp>,
    pub(super) views: BTreeMap<PartyId, View>,
    /// Whether this party has shown its view.
    pub(super) is_shown: bool,
    pub(super) ticks: u8,
}

impl Opening {
    pub(super) fn place(&self, party: PartyId) -> Option<u8> {
        u8::try_from(self.holders.iter().position(|holder| *holder == party)?).ok()
    }

    pub(super) fn reason(&self, party: PartyId) -> Option<Reason> {
        self.gave_up.get(&party).map(|gave_up| gave_up.reason)
    }

    /// Whom a holder says that it follows.
    pub(super) fn followed(&self, party: PartyId) -> Option<PartyId> {
        match self.reason(party)? {
            Reason::Failed => None,
            Reason::Follows(place) => self.holders.get(usize::from(place)).copied(),
        }
    }

    /// Holders that follow each other in a circle. One of them lies, as each that does not has heard whom it follows before it said so.
    pub(super) fn circle(&self) -> Option<Vec<PartyId>> {
        self.holders.iter().find_map(|start| {
            let path =
                core::iter::successors(Some(*start), |party| self.followed(*party)).skip(1).take(self.holders.len());
            let mut circle = Vec::new();
            for party in path {
                circle.push(party);
                if party == *start {
                    return Some(circle);
                }
            }
            None
        })
    }

    pub(super) fn others(&self, local: PartyId) -> impl Iterator<Item = PartyId> {
        self.holders.iter().copied().filter(move |holder| *holder != local)
    }
}
