//! What clients ask for, and what they take for an answer.

use bytes::Bytes;
use theta_authority::{InstanceId, KeyRequest, Presented, Request};
use theta_custody::KeyTable;
use theta_names::{Epoch, KeyRef, Label, Operation as Permission};
use theta_orchestration::Finished;
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::keys::{AnyPublicKey, KeyName};
use theta_schemes::{Purpose, RequestError, StatementBytes, Suite};
use theta_statements::{Ask, CeremonyRequest, KeyChange, StateChange};

use crate::permission::{approval, presented};
use crate::scenario::{Aim, Asked, Planned, Scenario};
use crate::setup::{Failed, GROUP, Setup, seeded};

/// What ciphertexts are labelled with.
const LABEL: &[u8] = b"label";

/// A request as a client has it.
pub(crate) struct Wanted {
    pub(crate) key: KeyName,
    operation: KeyRequest,
    pub(crate) statement: StatementBytes,
    pub(crate) asked: Asked,
    suite: Suite,
    ciphertext: Vec<u8>,
    /// Encoded.
    approvals: Vec<Bytes>,
}

impl Wanted {
    pub(crate) fn new(asked: &Asked, setup: &Setup, seed: u64) -> Result<Self, Failed> {
        let (name, public, held) = setup.key(asked.key)?;
        let text = Bytes::copy_from_slice(asked.text.as_bytes());
        let mut ciphertext = Vec::new();
        let (operation, statement) = match held.suite.purpose() {
            Purpose::Sign => (KeyRequest::Sign(text.clone()), StatementBytes::Sign(text)),
            Purpose::Coin => (KeyRequest::FlipCoin(text.clone()), StatementBytes::FlipCoin(text)),
            Purpose::Decrypt => {
                let sealed = public.encrypt(&text, LABEL, Aead::default(), &mut seeded(seed, asked.at));
                ciphertext = sealed.map_err(|error| error.to_string())?;
                let (header, _) = split_ciphertext(&ciphertext).map_err(|error| error.to_string())?;
                let header = Bytes::copy_from_slice(header);
                (KeyRequest::Decapsulate(header.clone()), StatementBytes::Decapsulate(header))
            }
        };
        let (key, asked, suite, approvals) = (name.clone(), asked.clone(), held.suite, Vec::new());
        let mut wanted = Self { key, operation, statement, asked, suite, ciphertext, approvals };
        let approval = |consent: &_| Ok(approval(*consent, &wanted.ask())?.encode().into());
        wanted.approvals = wanted.asked.consents.iter().map(approval).collect::<Result<_, Failed>>()?;
        Ok(wanted)
    }

    pub(crate) fn is_frost(&self) -> bool {
        self.suite.scheme() == "FROST"
    }

    /// How long an element of the suite's group is in FROST's messages.
    pub(crate) fn element_len(&self) -> usize {
        match self.suite.group() {
            "ed448" => 57,
            "p256" | "secp256k1" => 33,
            _ => 32,
        }
    }

    /// What is to be consented to.
    fn ask(&self) -> Ask<'_> {
        let (operation, label, statement) = match &self.statement {
            StatementBytes::Decapsulate(bytes) => {
                (Permission::Decapsulate, Label::new(LABEL).unwrap_or_default(), bytes)
            }
            StatementBytes::Sign(bytes) => (Permission::Sign, Label::EMPTY, bytes),
            StatementBytes::FlipCoin(bytes) => (Permission::FlipCoin, Label::EMPTY, bytes),
        };
        Ask { key: Some(self.key.as_str()), label, statement, slot: self.asked.slot, ..Ask::new(GROUP, operation) }
    }

    /// As a node's door decodes it.
    pub(crate) fn decoded(&self, keys: &KeyTable) -> Result<Request, RequestError> {
        let key = KeyRef { name: self.key.clone(), version: None };
        Ok(Request::new(keys, key, self.operation.clone())?.at(self.asked.slot))
    }

    /// What the client shows to this node.
    pub(crate) fn presented(&self, node: u16) -> Presented {
        presented(if self.asked.bare_at.contains(&node) { &[] } else { &self.approvals })
    }

    /// The instances that the request may have under a key, whose epoch may rise meanwhile.
    pub(crate) fn instances(&self, public: &AnyPublicKey, epoch: Epoch) -> impl Iterator<Item = (Epoch, InstanceId)> {
        let epochs = (0..=epoch.get() + 4).map(Epoch::new);
        epochs.map(|epoch| (epoch, InstanceId::new(public.key_id(), epoch, &self.statement)))
    }

    /// The place of the key under which a result is right; the first, if any opens it.
    pub(crate) fn right_under(&self, finished: &Finished, keys: &[AnyPublicKey]) -> Option<usize> {
        let result = finished.result.expose();
        if let StatementBytes::Decapsulate(_) = self.statement {
            let key = PayloadKey::from_bytes(result).ok()?;
            let text = open_bytes(&key, &self.ciphertext).ok()?;
            return (text.expose().as_slice() == self.asked.text.as_bytes()).then_some(0);
        }
        let right = |key: &AnyPublicKey| key.verify(self.asked.text.as_bytes(), result, &finished.proof).is_ok();
        keys.iter().position(right)
    }
}

/// A ceremony as a client asks for it.
pub(crate) fn ceremony(planned: &Planned, place: u8, setup: &Setup) -> Result<CeremonyRequest, Failed> {
    let name = |key: usize| setup.key(key).map(|(name, ..)| name.clone());
    let nodes = || setup.roster.nodes.iter().map(|node| node.get()).collect();
    let change = match &planned.aim {
        Aim::Create(suite) => KeyChange::Create {
            key: format!("made-{place}").parse().map_err(|error| format!("{error}"))?,
            suite: (*suite).into(),
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

/// The changes of states as a client signs them: of each key, each makes the next generation.
pub(crate) fn changes(scenario: &Scenario, setup: &Setup) -> Result<Vec<StateChange>, Failed> {
    let mut changes = Vec::new();
    for (place, wish) in scenario.changes.iter().enumerate() {
        let before = scenario.changes.iter().take(place).filter(|before| before.key == wish.key).count();
        let (key, generation) = (setup.key(wish.key)?.0.clone(), before as u64 + 1);
        changes.push(StateChange { key, version: None, state: wish.state, generation });
    }
    Ok(changes)
}
