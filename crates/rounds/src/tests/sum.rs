//! A sum whose terms stay hidden: everybody sends everybody a mask in private, commits to its masked term, and opens it.
//!
//! It is small, yet has all that the driver must handle: three rounds, private and broadcast slots, a check that names
//! a cheater, and a clock. It needs all n parties, so a ban ends it.

use core::fmt;
use std::collections::BTreeMap;

use bytes::Bytes;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};

use theta_names::ShareIndex;

use crate::{
    Abort, Bug, Channel, Evidence, Malformed, Outgoing, PartyId, ProtocolMessage, Recipient, Round, RoundProtocol, Slot,
};

pub(super) const MASK: Slot = Slot { kind: 1, number: 1 };
pub(super) const COMMIT: Slot = Slot { kind: 2, number: 2 };
pub(super) const OPEN: Slot = Slot { kind: 3, number: 3 };

pub(super) enum Message {
    Mask(u64),
    Commit([u8; 32]),
    Open { term: u64, nonce: u64 },
}

impl ProtocolMessage for Message {
    fn slot(&self) -> Slot {
        match self {
            Self::Mask(_) => MASK,
            Self::Commit(_) => COMMIT,
            Self::Open { .. } => OPEN,
        }
    }

    fn channel(slot: Slot) -> Option<Channel> {
        match slot {
            MASK => Some(Channel::Private),
            COMMIT | OPEN => Some(Channel::Broadcast),
            _ => None,
        }
    }

    fn encode(&self) -> Bytes {
        match self {
            Self::Mask(mask) => mask.to_le_bytes().to_vec().into(),
            Self::Commit(digest) => digest.to_vec().into(),
            Self::Open { term, nonce } => [term.to_le_bytes(), nonce.to_le_bytes()].concat().into(),
        }
    }

    fn decode(_from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).map_err(|_| Malformed("not 8 bytes"));
        match slot {
            MASK => number(payload).map(Self::Mask),
            COMMIT => payload.try_into().map(Self::Commit).map_err(|_| Malformed("not 32 bytes")),
            _ => {
                let (term, nonce) = payload.split_at_checked(8).ok_or(Malformed("too short"))?;
                Ok(Self::Open { term: number(term)?, nonce: number(nonce)? })
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FalseOpening;

impl fmt::Display for FalseOpening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("opening does not match the commitment")
    }
}

impl Evidence for FalseOpening {
    fn name(&self) -> &'static str {
        "false_opening"
    }
}

pub(super) struct MaskedSum {
    local: PartyId,
    n: u16,
    round: Round,
    term: u64,
    nonce: u64,
    masks: BTreeMap<PartyId, u64>,
    commitments: BTreeMap<PartyId, [u8; 32]>,
    terms: BTreeMap<PartyId, u64>,
    lost: usize,
    expired: bool,
}

impl MaskedSum {
    pub(super) fn new(local: PartyId, n: u16, term: u64) -> Self {
        Self {
            local,
            n,
            round: Round(0),
            term,
            nonce: 0,
            masks: BTreeMap::new(),
            commitments: BTreeMap::new(),
            terms: BTreeMap::new(),
            lost: 0,
            expired: false,
        }
    }

    fn commitment(from: PartyId, term: u64, nonce: u64) -> [u8; 32] {
        let hash = Sha256::new().chain_update(from.get().to_le_bytes()).chain_update(term.to_le_bytes());
        hash.chain_update(nonce.to_le_bytes()).finalize().into()
    }

    const fn is_lost(&self) -> bool {
        self.lost > 0 || self.expired
    }

    /// Whether all have sent what this round needs.
    fn is_complete(&self) -> bool {
        let others = usize::from(self.n) - 1;
        match self.round {
            Round(0) => true,
            Round(1) => self.masks.len() == others,
            Round(2) => self.commitments.len() == others,
            _ => self.terms.len() == others + 1,
        }
    }

    fn others(&self) -> impl Iterator<Item = PartyId> {
        let local = self.local;
        (1..=self.n)
            .filter_map(|id| ShareIndex::try_from(id).ok())
            .map(PartyId::of_share)
            .filter(move |id| *id != local)
    }
}

impl RoundProtocol for MaskedSum {
    type Message = Message;
    type Output = u64;
    type Misbehaviour = FalseOpening;
    type Ask = core::convert::Infallible;
    type Supply = core::convert::Infallible;

    fn round(&self) -> Round {
        self.round
    }

    fn longest(&self, _slot: Slot) -> usize {
        64
    }

    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Message>>, Bug> {
        self.round.0 += 1;
        let message = match self.round {
            Round(1) => {
                let masks: Vec<_> = self.others().map(|to| (to, rng.next_u64())).collect();
                self.term = masks.iter().fold(self.term, |term, (_, mask)| term.wrapping_add(*mask));
                let out = |(to, mask)| Outgoing { to: Recipient::Party(to), message: Message::Mask(mask) };
                return Ok(masks.into_iter().map(out).collect());
            }
            Round(2) => {
                self.term = self.masks.values().fold(self.term, |term, mask| term.wrapping_sub(*mask));
                self.nonce = rng.next_u64();
                Message::Commit(Self::commitment(self.local, self.term, self.nonce))
            }
            Round(3) => {
                self.terms.insert(self.local, self.term);
                Message::Open { term: self.term, nonce: self.nonce }
            }
            _ => return Err(Bug("a fourth round")),
        };
        Ok(vec![Outgoing { to: Recipient::All, message }])
    }

    fn update(&mut self, from: PartyId, message: Message) -> Result<(), Vec<(PartyId, FalseOpening)>> {
        match message {
            Message::Mask(mask) => {
                self.masks.insert(from, mask);
            }
            Message::Commit(digest) => {
                self.commitments.insert(from, digest);
            }
            Message::Open { term, nonce } => {
                if self.commitments.get(&from) != Some(&Self::commitment(from, term, nonce)) {
                    return Err(vec![(from, FalseOpening)]);
                }
                self.terms.insert(from, term);
            }
        }
        Ok(())
    }

    fn expire_round(&mut self) {
        self.expired = true;
    }

    fn exclude(&mut self, _party: PartyId) {
        self.lost += 1;
    }

    fn awaits(&self, _party: PartyId) -> bool {
        true
    }

    fn is_ready_for_next_round(&self) -> bool {
        self.round < Round(3) && self.is_complete()
    }

    fn is_ready_to_finalize(&self) -> bool {
        self.is_lost() || (self.round == Round(3) && self.is_complete())
    }

    fn contributions(&self) -> (usize, usize) {
        (self.terms.len(), usize::from(self.n))
    }

    fn finalize(self) -> Result<u64, Abort> {
        let needed = usize::from(self.n);
        match self.is_lost() {
            false => Ok(self.terms.values().fold(0, |sum, term| sum.wrapping_add(*term))),
            true => Err(Abort::TooFewHonest { remaining: needed - self.lost.max(usize::from(self.expired)), needed }),
        }
    }
}
