//! Nodes with keys in stores, on disks that can lose power.

use std::sync::Arc;

use crate::gated::Request;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_authority::KeyRequest;
use theta_ceremonies::CeremonyKeys;
use theta_custody::{Custodian, KeyEntry, Roster};
use theta_groups::Secret;
use theta_names::{Delivery, NodeId};
use theta_orchestration::Finished;
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::{
    Purpose, Suite,
    keys::{AnyPublicKey, KeyName},
};
use theta_statements::{CeremonyRequest, KeyChange};
use theta_store::{Options, SealingKey, Store, disk::SimulatedDisk};

use crate::group::rng;

pub(crate) fn party(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

pub(crate) fn name(text: &str) -> KeyName {
    text.parse().unwrap()
}

fn identity(node: u16) -> Secret<[u8; 32]> {
    let mut secret = [0x5a; 32];
    secret[..2].copy_from_slice(&node.to_be_bytes());
    Secret::new(secret)
}

fn roster(k: u16, n: u16) -> Roster {
    let member = |node| CeremonyKeys::new(party(node), identity(node)).member().clone();
    Roster {
        name: "a group".to_owned(),
        nodes: (1..=n).map(party).collect(),
        members: (1..=n).map(member).collect(),
        k,
        founding: None,
    }
}

/// One node's disk, and the group to which the node belongs.
pub(crate) struct Member {
    id: u16,
    roster: Roster,
    disk: SimulatedDisk,
}

impl Member {
    /// Nodes 1 to `n`, without keys.
    pub(crate) fn group(k: u16, n: u16) -> Vec<Self> {
        let roster = roster(k, n);
        let member = |id| {
            let member = Self { id, roster: roster.clone(), disk: SimulatedDisk::default() };
            let options = Options::default().with_rng(ChaCha20Rng::seed_from_u64(id.into()));
            let store = Store::create_on(member.disk.backend(), &Self::sealing_key(), options).unwrap();
            store.set_identity(&identity(id)).unwrap();
            member
        };
        (1..=n).map(member).collect()
    }

    fn sealing_key() -> SealingKey {
        SealingKey::key(Secret::new([7; 32]))
    }

    /// Opens the custodian, as the node does when its process starts; the store's randomness follows from `seed`.
    pub(crate) fn custodian(&self, seed: u64) -> Custodian {
        let options = Options::default().with_rng(ChaCha20Rng::seed_from_u64(seed));
        let store = Store::open_on(self.disk.backend(), &Self::sealing_key(), options).unwrap();
        Custodian::open(Arc::new(store), party(self.id), self.roster.clone()).unwrap()
    }

    /// Loses what was not synced. The node's process must have ended.
    pub(crate) fn fail_power(&self, seed: u64) {
        self.disk.fail_power(&mut ChaCha20Rng::seed_from_u64(seed));
    }
}

/// A request for a ceremony; `number` distinguishes requests of the same change.
pub(crate) fn ceremony(number: u8, change: KeyChange) -> CeremonyRequest {
    CeremonyRequest { nonce: [number; 32], change }
}

pub(crate) fn create(key: &str, suite: Suite, k: u16, holders: &[u16]) -> KeyChange {
    KeyChange::Create { key: name(key), suite: suite.into(), delivery: Delivery::All, k, holders: holders.to_vec() }
}

/// A statement for a key, and how to check the answer.
pub(crate) struct Question {
    pub(crate) request: Request,
    public: AnyPublicKey,
    text: String,
    ciphertext: Vec<u8>,
}

impl Question {
    pub(crate) fn new(key: &KeyEntry, text: &str) -> Self {
        let mut ciphertext = Vec::new();
        let bytes = text.as_bytes().to_vec();
        let operation = match key.suite.purpose() {
            Purpose::Sign => KeyRequest::Sign(bytes.into()),
            Purpose::Coin => KeyRequest::FlipCoin(bytes.into()),
            Purpose::Decrypt => {
                ciphertext = key.public.encrypt(&bytes, b"label", Aead::default(), &mut rng()).unwrap();
                KeyRequest::Decapsulate(split_ciphertext(&ciphertext).unwrap().0.to_vec().into())
            }
        };
        let request = Request { key: key.name.to_string(), operation };
        Self { request, public: key.public.clone(), text: text.to_owned(), ciphertext }
    }

    /// Checks an answer under the key that the question was made for.
    pub(crate) fn check(&self, finished: &Finished) {
        self.check_under(finished, [&self.public]);
    }

    /// Checks an answer under one of these epochs of the key. Plaintexts, signatures and coins are the same in all
    /// epochs, but a coin's proof is made of shares, and so belongs to one epoch.
    pub(crate) fn check_under<'a>(&self, finished: &Finished, epochs: impl IntoIterator<Item = &'a AnyPublicKey>) {
        if self.public.suite().purpose() == Purpose::Decrypt {
            let key = PayloadKey::from_bytes(finished.result.expose()).unwrap();
            assert_eq!(open_bytes(&key, &self.ciphertext).unwrap().expose().as_slice(), self.text.as_bytes());
        } else {
            let (text, result) = (self.text.as_bytes(), finished.result.expose());
            assert!(epochs.into_iter().any(|public| public.verify(text, result, &finished.proof).is_ok()));
        }
    }
}
