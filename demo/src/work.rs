//! Decrypting, signing and drawing, with every result checked, many times over.

use std::collections::BTreeSet;

use theta::{
    exit::Failure,
    keys::{Keyring, NamedKey},
};
use theta_client::{Answer, Client};
use theta_cluster::Latencies;
use theta_names::NodeId;
use theta_payload::{self as payload, Aead};

use super::{
    independent::{self, Verdict},
    material::Material,
    show::Row,
};

/// The things that the group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Decrypt,
    Sign,
    /// In two rounds, with a key that is an ordinary Ed25519 key.
    SignEd25519,
    Flip,
}

impl Operation {
    /// In the order of the story: one of each purpose.
    pub(crate) const ALL: [Self; 3] = [Self::Decrypt, Self::Sign, Self::Flip];
    /// The same and a signature in two rounds.
    pub(crate) const ALL_AND_TWO_ROUNDS: [Self; 4] = [Self::Decrypt, Self::Sign, Self::SignEd25519, Self::Flip];

    /// The key that does it.
    const fn key(self) -> &'static str {
        match self {
            Self::Decrypt => "files",
            Self::Sign => "sign",
            Self::SignEd25519 => "sign-ed25519",
            Self::Flip => "coin",
        }
    }

    /// In the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Decrypt => "decrypt",
            Self::Sign | Self::SignEd25519 => "sign",
            Self::Flip => "flip coin",
        }
    }
}

/// A client with work to do.
pub(crate) struct Worker<'a> {
    pub(crate) client: Client,
    pub(crate) keyring: Keyring,
    pub(crate) material: &'a Material,
}

/// A result that was found to be good, and how it came about.
pub(crate) struct Done {
    /// In words, for the story.
    pub(crate) account: String,
    /// How it came about.
    pub(crate) answer: Answer<()>,
}

/// Many results of one kind.
pub(crate) struct Tally {
    operation: Operation,
    scheme: String,
    latencies: Latencies,
    attempts: usize,
    good: usize,
    answered: BTreeSet<u16>,
    shares_from: BTreeSet<u16>,
    culprits: BTreeSet<u16>,
}

impl Worker<'_> {
    /// Does one operation on an input that the nodes have not seen, and checks the result.
    pub(crate) async fn perform(&self, operation: Operation, act: &str, round: u16) -> Result<Done, Failure> {
        let key = self.keyring.named(operation.key())?;
        match operation {
            Operation::Decrypt => self.decrypt(&key).await,
            Operation::Sign | Operation::SignEd25519 => self.sign(&key, act, round).await,
            Operation::Flip => self.flip(&key, act, round).await,
        }
    }

    /// Does one operation `rounds` times. A failure ends the demo: none may fail.
    pub(crate) async fn repeat(&self, operation: Operation, act: &'static str, rounds: u16) -> Result<Tally, Failure> {
        let mut tally = self.tally(operation)?;
        for round in 1..=rounds {
            tally.add(&self.perform(operation, act, round).await?);
        }
        Ok(tally)
    }

    /// A count of results of this kind, of none yet.
    pub(crate) fn tally(&self, operation: Operation) -> Result<Tally, Failure> {
        let scheme = self.keyring.named(operation.key())?.public.suite();
        Tally::new(operation, format!("{} {}", scheme.scheme(), scheme.group()))
    }

    async fn decrypt(&self, key: &NamedKey) -> Result<Done, Failure> {
        let Material { name, contents } = self.material;
        let mut rng = theta::random::generator()?;
        let sealed = payload::encrypt_bytes(&key.public, contents, b"theta demo", Aead::default(), &mut rng)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let (header, _) = payload::split_ciphertext(&sealed).map_err(Failure::internal)?;
        let header_len = header.len();
        let answer = self.client.decrypt(key.name.as_str(), sealed.into()).await?;
        if answer.result.expose() != contents {
            return Err(Failure::Failed(format!("the decryption of {name} differs from {name}")));
        }
        let account = format!("decrypted {name}: the nodes saw a header of {header_len} bytes, the contents are equal");
        Ok(Done { account, answer: answer.map(drop) })
    }

    async fn sign(&self, key: &NamedKey, act: &str, round: u16) -> Result<Done, Failure> {
        let message = self.material.variant(act, round);
        let answer = self.client.sign(key.name.as_str(), message.clone().into()).await?;
        let who = match independent::verify(&key.public, &message, &answer.result)? {
            Verdict::Accepted(who) => who,
            verdict => return Err(Failure::Failed(format!("a signature of the group is not accepted: {verdict:?}"))),
        };
        let (name, scheme) = (&self.material.name, key.public.suite().scheme());
        let account = format!("signed {name} ({scheme}): the verifier of the library {who} accepts the signature");
        Ok(Done { account, answer: answer.map(drop) })
    }

    async fn flip(&self, key: &NamedKey, act: &str, round: u16) -> Result<Done, Failure> {
        let name = format!("theta demo, {act}, {round}");
        let answer = self.client.flip_coin(key.name.as_str(), name.clone().into()).await?;
        let coin = &answer.result;
        key.public
            .verify(name.as_bytes(), &coin.value, &coin.proof)
            .map_err(|error| Failure::Failed(format!("the coin {name:?} does not verify: {error}")))?;
        let digits = hex::encode(&coin.value);
        let face = if coin.value.first().is_some_and(|byte| byte & 1 == 0) { "heads" } else { "tails" };
        let start = digits.get(..16).unwrap_or(&digits);
        let account = format!("flipped the coin {name:?}: {start}... ({face}), its proof holds");
        Ok(Done { account, answer: answer.map(drop) })
    }
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new(operation: Operation, scheme: String) -> Result<Self, Failure> {
        Ok(Self {
            operation,
            scheme,
            latencies: Latencies::new()?,
            attempts: 0,
            good: 0,
            answered: BTreeSet::new(),
            shares_from: BTreeSet::new(),
            culprits: BTreeSet::new(),
        })
    }

    /// One more.
    pub(crate) fn add(&mut self, done: &Done) {
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.get()).collect::<Vec<u16>>();
        self.latencies.record(done.answer.latency);
        self.attempts += 1;
        self.good += 1;
        self.answered.insert(done.answer.node.get());
        self.shares_from.extend(numbers(&done.answer.contributors));
        self.culprits.extend(done.answer.culprits.iter().map(|culprit| culprit.node.get()));
    }

    /// What these are results of.
    pub(crate) const fn operation(&self) -> Operation {
        self.operation
    }

    /// A culprit that was named outside of an answer.
    pub(crate) fn caught(&mut self, node: u16) {
        self.culprits.insert(node);
    }

    /// For the table.
    pub(crate) fn row(self, act: &'static str) -> Row {
        let row = Row {
            act,
            operation: self.operation.name(),
            scheme: self.scheme,
            good: self.good,
            of: self.attempts,
            p50_ms: 0.0,
            p95_ms: 0.0,
            answered: self.answered.into_iter().collect(),
            shares_from: self.shares_from.into_iter().collect(),
            culprits: self.culprits.into_iter().collect(),
        };
        row.with_latencies(&self.latencies)
    }
}
