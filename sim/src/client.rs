//! The requests of clients, and the answers that they accept.

use bytes::Bytes;
use theta_authority::{InstanceId, KeyRequest, Presented, Request};
use theta_custody::KeyTable;
use theta_names::{Delivery, Epoch, KeyRef, Label, Operation as Permission};
use theta_orchestration::Finished;
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::keys::{AnyPublicKey, KeyName};
use theta_schemes::{MessageDigest, Purpose, RequestError, Statement, Suite};
use theta_statements::{Ask, CeremonyRequest, KeyChange, StateChange};

use crate::group::{Failed, GROUP};
use crate::permission::{approval, presented};
use crate::scenario::{Aim, Asked, Planned, Scenario};
use crate::setup::{Setup, seeded};

/// The label of ciphertexts.
const LABEL: &[u8] = b"label";

/// A request of a client.
pub(crate) struct Wanted {
    pub(crate) key: KeyName,
    operation: KeyRequest,
    pub(crate) asked: Asked,
    suite: Suite,
    ciphertext: Vec<u8>,
    /// Encoded approvals.
    approvals: Vec<Bytes>,
}

impl Wanted {
    pub(crate) fn new(asked: &Asked, setup: &Setup, seed: u64) -> Result<Self, Failed> {
        let (name, public, held) = setup.key(asked.key)?;
        let text = Bytes::copy_from_slice(asked.text.as_bytes());
        let mut ciphertext = Vec::new();
        let operation = match held.suite.purpose() {
            Purpose::Sign if asked.hashed => KeyRequest::SignDigest(MessageDigest::Sha256.of(&text).into()),
            Purpose::Sign => KeyRequest::Sign(text),
            Purpose::Coin => KeyRequest::FlipCoin(text),
            Purpose::Decrypt => {
                let sealed = public.encrypt(&text, LABEL, Aead::default(), &mut seeded(seed, asked.at));
                ciphertext = sealed.map_err(|error| error.to_string())?;
                let (header, _) = split_ciphertext(&ciphertext).map_err(|error| error.to_string())?;
                KeyRequest::Decapsulate(Bytes::copy_from_slice(header))
            }
        };
        let (key, asked, suite, approvals) = (name.clone(), asked.clone(), held.suite, Vec::new());
        let mut wanted = Self { key, operation, asked, suite, ciphertext, approvals };
        let approval = |consent: &_| Ok(approval(*consent, &wanted.ask())?.encode().into());
        wanted.approvals = wanted.asked.consents.iter().map(approval).collect::<Result<_, Failed>>()?;
        Ok(wanted)
    }

    pub(crate) fn is_frost(&self) -> bool {
        self.suite.scheme() == "FROST"
    }

    pub(crate) fn is_ecdsa(&self) -> bool {
        self.suite.scheme() == "ECDSA"
    }

    /// Whether all right results are the same, whoever coordinated.
    pub(crate) fn has_one_result(&self) -> bool {
        !self.is_frost() && !self.is_ecdsa()
    }

    /// The bytes of an element of the suite's group in FROST's messages.
    pub(crate) fn element_len(&self) -> usize {
        match self.suite.group() {
            "ed448" => 57,
            "p256" | "secp256k1" => 33,
            _ => 32,
        }
    }

    /// What the key is asked.
    fn statement(&self) -> Statement<'_> {
        match &self.operation {
            KeyRequest::Decapsulate(header) => Statement::Decapsulate(header),
            KeyRequest::Decrypt(header) => Statement::Header(header),
            KeyRequest::Sign(message) | KeyRequest::SignRandomized { message, .. } => Statement::Sign(message),
            KeyRequest::SignDigest(digest) => Statement::SignDigest(digest),
            KeyRequest::FlipCoin(name) => Statement::FlipCoin(name),
        }
    }

    /// The statement to approve.
    fn ask(&self) -> Ask<'_> {
        let statement = self.statement();
        let (operation, label) = match statement {
            Statement::Decapsulate(_) | Statement::Header(_) => {
                (Permission::Decapsulate, Label::new(LABEL).unwrap_or_default())
            }
            Statement::Sign(_) => (Permission::Sign, Label::EMPTY),
            Statement::SignDigest(_) => (Permission::SignDigest, Label::EMPTY),
            Statement::FlipCoin(_) => (Permission::FlipCoin, Label::EMPTY),
        };
        let statement = statement.bytes();
        Ask { key: Some(self.key.as_str()), label, statement, slot: self.asked.slot, ..Ask::new(GROUP, operation) }
    }

    /// The request as a node decodes it.
    pub(crate) fn decoded(&self, keys: &KeyTable) -> Result<Request, RequestError> {
        let key = KeyRef { name: self.key.clone(), version: None };
        Ok(Request::new(keys, key, self.operation.clone())?.at(self.asked.slot))
    }

    /// The credentials that the client shows to this node.
    pub(crate) fn presented(&self, node: u16) -> Presented {
        presented(if self.asked.bare_at.contains(&node) { &[] } else { &self.approvals })
    }

    /// The instances that the request may have under a key, whose epoch may rise while it runs.
    pub(crate) fn instances(&self, public: &AnyPublicKey, epoch: Epoch) -> impl Iterator<Item = (Epoch, InstanceId)> {
        let epochs = (0..=epoch.get() + 4).map(Epoch::new);
        epochs.map(|epoch| (epoch, InstanceId::new(public.key_id(), epoch, self.statement())))
    }

    /// The position of the key under which a result is right; the first one if any key opens it.
    pub(crate) fn right_under(&self, finished: &Finished, keys: &[AnyPublicKey]) -> Option<usize> {
        let result = finished.result.expose();
        if let Statement::Decapsulate(_) = self.statement() {
            let key = PayloadKey::from_bytes(result).ok()?;
            let text = open_bytes(&key, &self.ciphertext).ok()?;
            return (text.expose().as_slice() == self.asked.text.as_bytes()).then_some(0);
        }
        let right = |key: &AnyPublicKey| key.verify(self.asked.text.as_bytes(), result, &finished.proof).is_ok();
        keys.iter().position(right)
    }
}

/// The request of a client for a ceremony.
pub(crate) fn ceremony(planned: &Planned, place: u8, setup: &Setup) -> Result<CeremonyRequest, Failed> {
    let name = |key: usize| setup.key(key).map(|(name, ..)| name.clone());
    let nodes = || setup.roster.nodes.iter().map(|node| node.get()).collect();
    let change = match &planned.aim {
        Aim::Create(suite) => KeyChange::Create {
            key: format!("made-{place}").parse().map_err(|error| format!("{error}"))?,
            suite: (*suite).into(),
            // Every other key that is made, where its suite has quorum mode.
            delivery: if place.is_multiple_of(2) && suite.supports(Delivery::Quorum) {
                Delivery::Quorum
            } else {
                Delivery::All
            },
            k: setup.roster.k,
            holders: nodes(),
        },
        Aim::Rotate(key) => KeyChange::Rotate { key: name(*key)? },
        Aim::Refresh(key) => KeyChange::Refresh { key: name(*key)?, version: None },
        Aim::Reshare(key, k, holders) => {
            KeyChange::Reshare { key: name(*key)?, version: None, k: *k, holders: holders.clone() }
        }
        Aim::Recover(key, node) => KeyChange::Recover { key: name(*key)?, version: None, node: *node },
    };
    Ok(CeremonyRequest { nonce: [place; 32], change })
}

/// The changes of states as a client signs them. Each change of a key makes its next generation.
pub(crate) fn changes(scenario: &Scenario, setup: &Setup) -> Result<Vec<StateChange>, Failed> {
    let mut changes = Vec::new();
    for (place, wish) in scenario.changes.iter().enumerate() {
        let before = scenario.changes.iter().take(place).filter(|before| before.key == wish.key).count();
        let (key, generation) = (setup.key(wish.key)?.0.clone(), before as u64 + 1);
        changes.push(StateChange { key, version: None, state: wish.state, generation, not_before: 0 });
    }
    Ok(changes)
}
