//! The subject of a request: the operation, the key, and the statement that policies and approvals refer to.

use std::path::PathBuf;

use clap::Args;
use theta_client::{CeremonyRequest, Client, KeyChange, KeyRef, KeyState, StateChange};
use theta_ledger::MemberChange;
use theta_names::{Label, Operation};
use theta_network::group::GroupFile;
use theta_payload::{self as payload, Header};
use theta_schemes::MAX_MESSAGE_LEN;
use theta_statements::{Ask, CancelRequest, TakeBackRequest, UnixTime, audit::Checkpoint};

use super::Nonce;
use crate::{
    ask::check_coin_name,
    exit::Failure,
    files::Source,
    keys::change::{ChangeArgs, in_words},
    members::{aloud, one_card},
    signature::DigestWord,
};

/// What would be asked.
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    /// What for: sign, decapsulate, flip-coin, keys.refresh, status, ... (theta decrypt asks for decapsulate)
    #[arg(long, value_name = "OPERATION", required = true)]
    operation: Option<Operation>,
    /// With which key; for operations on keys also NAME@VERSION
    #[arg(long, value_name = "NAME")]
    key: Option<KeyRef>,
    /// About what: the file to sign, or the encrypted file, of which the header counts; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "coin")]
    message: Option<PathBuf>,
    /// About which coin
    #[arg(long, value_name = "NAME")]
    coin: Option<String>,
    /// For sign-digest: sha256:HEX or sha512:HEX, as theta sign shows it
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["message", "coin", "checkpoint"])]
    digest: Option<DigestWord>,
    /// For audit.prune: through which record
    #[arg(long, value_name = "CHECKPOINT", conflicts_with_all = ["message", "coin"])]
    checkpoint: Option<Checkpoint>,
    #[command(flatten)]
    change: ChangeArgs,
    /// For group.change: the card of a new member or, with --node, of another machine in a member's place; without it, --node is removed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["message", "coin"])]
    card: Option<PathBuf>,
    /// For group.change: that the change come to nothing (theta group cancel), if the group has not decided it yet
    #[arg(long, conflicts_with_all = ["message", "coin"])]
    take_back: bool,
    /// For ceremonies: the nonce of the request, as the first approver was shown it [default: a new one]
    #[arg(long, value_name = "HEX")]
    nonce: Option<Nonce>,
    /// For keys.enable, keys.disable and keys.destroy: the generation that the change makes, one more than theta keys list --live shows
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    generation: Option<u64>,
    /// For keys.destroy: when the key is destroyed, as theta keys destroy --at is given it [default: at once, as with --now]
    #[arg(long, value_name = "TIME")]
    at: Option<UnixTime>,
}

/// The subject, read from the files that were named.
pub(crate) struct Subject {
    /// The operation.
    pub(crate) operation: Operation,
    /// The key.
    pub(crate) key: Option<String>,
    /// The label of a ciphertext.
    pub(crate) label: Label<Vec<u8>>,
    /// The bytes to which approvals refer.
    pub(crate) statement: Vec<u8>,
    /// A description of the statement; `None` if the arguments named none.
    pub(crate) about: Option<String>,
    /// The nonce in the statement, if it is the request of a ceremony.
    pub(crate) nonce: Option<Nonce>,
}

impl Subject {
    /// That a ceremony that runs or waits come to nothing. It is the operation that began it, with a statement of its own.
    pub(crate) fn cancel(request: CeremonyRequest) -> Self {
        let change = &request.change;
        let id = hex::encode(request.digest());
        let about = format!("the ceremony {} comes to nothing: {}", id.get(..8).unwrap_or_default(), in_words(change));
        let (operation, key) = (change.operation(), Some(change.key().to_string()));
        let statement = CancelRequest { request }.encode();
        Self { operation, key, label: Label::default(), statement, about: Some(about), nonce: None }
    }

    /// The subject as policies see it.
    pub(crate) fn ask<'a>(&'a self, group: &'a str) -> Ask<'a> {
        Ask {
            key: self.key.as_deref(),
            label: self.label.view(),
            statement: &self.statement,
            ..Ask::new(group, self.operation)
        }
    }
}

/// A statement with its description, and what came with it.
struct Statement {
    bytes: Vec<u8>,
    about: String,
    label: Label<Vec<u8>>,
    nonce: Option<Nonce>,
}

/// A statement without a label or a nonce.
fn of_text(about: &str, bytes: Vec<u8>) -> Statement {
    Statement { bytes, about: about.to_owned(), label: Label::default(), nonce: None }
}

impl SubjectArgs {
    /// The operation.
    fn operation(&self) -> Result<Operation, Failure> {
        self.operation.ok_or_else(|| Failure::Usage("say what for with --operation".to_owned()))
    }

    /// Reads the subject. `group` gives what the arguments of a change of a key leave open.
    pub(crate) fn read(&self, group: impl FnOnce() -> Result<GroupFile, Failure>) -> Result<Subject, Failure> {
        self.read_with(true, group)
    }

    /// The same without the details of a ceremony, which make no difference to a policy without approvals.
    pub(crate) fn read_roughly(&self, group: impl FnOnce() -> Result<GroupFile, Failure>) -> Result<Subject, Failure> {
        self.read_with(false, group)
    }

    fn read_with(&self, whole: bool, group: impl FnOnce() -> Result<GroupFile, Failure>) -> Result<Subject, Failure> {
        let operation = self.operation()?;
        let statement = match operation {
            Operation::Sign => self.message()?,
            Operation::SignDigest => self.digest(),
            Operation::Decapsulate | Operation::Decrypt => self.header()?,
            Operation::FlipCoin => self.coin()?,
            Operation::KeysBackup => Some(of_text("a backup of each node that is asked", Vec::new())),
            Operation::AuditPrune => self.checkpoint(),
            Operation::GroupChange => self.change_of_members()?,
            _ => self.change_of_key(operation, whole, group)?,
        };
        let unused = [
            (self.checkpoint.is_some(), "--checkpoint is for audit.prune", Operation::AuditPrune),
            (self.card.is_some(), "--card is for group.change", Operation::GroupChange),
            (self.take_back, "--take-back is for group.change", Operation::GroupChange),
            (self.digest.is_some(), "--digest is for sign-digest", Operation::SignDigest),
            (self.at.is_some(), "--at is for keys.destroy", Operation::KeysDestroy),
            (self.coin.is_some(), "--coin is for flip-coin", Operation::FlipCoin),
        ];
        if let Some((_, words, _)) = unused.iter().find(|(given, _, of)| *given && *of != operation) {
            return Err(Failure::Usage(format!("{words}, not for {operation}")));
        }
        let key = self.key.as_ref().map(|key| key.name.to_string());
        Ok(match statement {
            Some(Statement { bytes, about, label, nonce }) => {
                Subject { operation, key, label, statement: bytes, about: Some(about), nonce }
            }
            None => {
                Subject { operation, key, label: Label::default(), statement: Vec::new(), about: None, nonce: None }
            }
        })
    }

    /// The recoveries of the shares of these keys at the node that was named: one request each, and one nonce for all.
    pub(crate) fn recoveries(
        &self,
        keys: &dyn Fn(u16) -> Result<Vec<KeyRef>, Failure>,
    ) -> Result<Vec<Subject>, Failure> {
        let (operation, node) = (self.operation()?, self.change.node());
        let (Operation::KeysRecover, Some(node)) = (operation, node) else {
            return Err(Failure::Usage("--all is for keys.recover, with --node".to_owned()));
        };
        let nonce = self.nonce.map_or_else(Nonce::draw, Ok)?;
        let subject = |KeyRef { name, version }: KeyRef| {
            let (key, change) = (Some(name.to_string()), KeyChange::Recover { key: name, version, node });
            let (about, label) = (Some(in_words(&change)), Label::default());
            let statement = CeremonyRequest { nonce: nonce.0, change }.encode();
            Subject { operation, key, label, statement, about, nonce: Some(nonce) }
        };
        Ok(keys(node)?.into_iter().map(subject).collect())
    }

    fn message(&self) -> Result<Option<Statement>, Failure> {
        let Some(path) = &self.message else { return Ok(None) };
        let source = Source::open(path)?;
        let name = source.name.display().to_string();
        let bytes = source.read_all(MAX_MESSAGE_LEN, "sign its digest instead")?;
        let about = format!("{name}, {} bytes", bytes.len());
        Ok(Some(Statement { bytes, about, label: Label::default(), nonce: None }))
    }

    fn header(&self) -> Result<Option<Statement>, Failure> {
        let Some(path) = &self.message else { return Ok(None) };
        let mut source = Source::open(path)?;
        let name = source.name.display().to_string();
        let wrong = |error: &dyn core::fmt::Display| Failure::Usage(format!("{name}: {error}"));
        let bytes = payload::read_header(&mut source.reader).map_err(|error| wrong(&error))?;
        let label = Header::parse(&bytes).map_err(|error| wrong(&error))?.label().copied();
        let about = format!("the header of {name}, labelled {:?}", String::from_utf8_lossy(label.view().bytes()));
        Ok(Some(Statement { bytes, about, label, nonce: None }))
    }

    fn coin(&self) -> Result<Option<Statement>, Failure> {
        let Some(coin) = &self.coin else { return Ok(None) };
        check_coin_name(coin)?;
        let about = format!("the coin {coin:?}");
        Ok(Some(Statement { bytes: coin.clone().into_bytes(), about, label: Label::default(), nonce: None }))
    }

    fn digest(&self) -> Option<Statement> {
        let DigestWord(algorithm, digest) = self.digest.as_ref()?;
        Some(of_text(&format!("the message of digest {algorithm}:{}", hex::encode(digest)), digest.clone()))
    }

    /// A change of the group's members that takes their consent.
    fn change_of_members(&self) -> Result<Option<Statement>, Failure> {
        let card = self.card.as_deref().map(one_card).transpose()?;
        let (change, about) = match (card, self.change.node()) {
            (Some(card), None) => {
                let about =
                    format!("{} is a new member, with the key {}", card.name(), aloud(&card.content().ceremony_key));
                (MemberChange::Add(card), about)
            }
            (Some(card), Some(node)) => {
                let key = aloud(&card.content().ceremony_key);
                let about = format!("node {node} ({}) is another machine, with the key {key}", card.name());
                (MemberChange::Replace { node, card }, about)
            }
            (None, Some(node)) => (MemberChange::Remove { node }, format!("node {node} is no member any more")),
            (None, None) => return Ok(None),
        };
        let nonce = self.nonce.map_or_else(Nonce::draw, Ok)?;
        let request = Client::member_request(&change, Vec::new(), Some(nonce.0))?;
        let (bytes, about) = if self.take_back {
            let back = TakeBackRequest { nonce: request.nonce, change: request.change };
            (back.encode(), format!("what is not decided yet comes to nothing: {about}"))
        } else {
            (request.encode(), about)
        };
        Ok(Some(Statement { bytes, about, label: Label::default(), nonce: Some(nonce) }))
    }

    fn checkpoint(&self) -> Option<Statement> {
        let checkpoint = self.checkpoint?.to_string();
        Some(of_text(&format!("the log through {checkpoint}"), checkpoint.into_bytes()))
    }

    /// A ceremony or a change of state, if the operation is one and a key was named.
    fn change_of_key(
        &self,
        operation: Operation,
        whole: bool,
        group: impl FnOnce() -> Result<GroupFile, Failure>,
    ) -> Result<Option<Statement>, Failure> {
        let Some(key) = &self.key else { return Ok(None) };
        let state = match operation {
            Operation::KeysEnable => Some(KeyState::Active),
            Operation::KeysDisable => Some(KeyState::Disabled),
            Operation::KeysDestroy => Some(KeyState::Destroyed),
            _ => None,
        };
        let (bytes, about, nonce) = match (state, self.generation) {
            (Some(state), Some(generation)) => {
                // The ledger counts in seconds.
                let not_before = self.at.map_or(0, |at| at.0 / 1_000);
                let change = StateChange { key: key.name.clone(), version: key.version, state, generation, not_before };
                let about = match (state, self.at) {
                    (KeyState::Destroyed, Some(at)) => format!("{key} is disabled, and destroyed at {at}"),
                    (KeyState::Destroyed, None) => format!("{key} is destroyed at once (theta keys destroy --now)"),
                    _ => format!("{key} becomes {state}"),
                };
                (change.encode(), format!("{about}, generation {generation}"), None)
            }
            // An approval names the generation; for everything else the statement does not matter.
            (Some(_), None) => return Ok(None),
            (None, _) => match self.change.change(operation, key.clone(), group) {
                Err(_) if !whole && !self.change.is_given() => return Ok(None),
                Err(failure) => return Err(failure),
                Ok(Some(change)) => {
                    let nonce = self.nonce.map_or_else(Nonce::draw, Ok)?;
                    let about = in_words(&change);
                    (CeremonyRequest { nonce: nonce.0, change }.encode(), about, Some(nonce))
                }
                Ok(None) => return Ok(None),
            },
        };
        Ok(Some(Statement { bytes, about, label: Label::default(), nonce }))
    }
}
