//! The Rust SDK: asks every node of a group, takes the first good answer, and believes only what it has checked itself.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // A client file, as `theta client new` writes it, or a client directory of `theta group init`.
//! let client = theta_client::Client::open("theta-group/client".as_ref())?;
//! let answer = client.sign("sign", "a message".into()).await?;
//! println!("signed by nodes {:?} in {:?}", answer.contributors, answer.latency);
//! # Ok(())
//! # }
//! ```
//!
//! [`blocking`] has the same for programs without an async runtime.
//!
//! A node acts only on requests that it receives itself, so each request goes to all nodes. Each answer is checked here: a
//! payload key by the commitment in the ciphertext's header, a signature with the public key, a coin by its proof. A node
//! whose answer fails the check is named, and the client waits for the next answer.

mod answer;
pub mod blocking;
mod connection;
mod credentials;
mod error;
mod fan_out;
mod folder;
mod governance;
mod keys;
mod ledger;
mod members;
mod operations;
mod options;
mod status;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use theta_names::NodeId;
use theta_network::{Identity, group::GroupFile};
use theta_schemes::keys::{AnyPublicKey, KeyName};
use theta_wire::v1::{
    threshold_protocol_client::ThresholdProtocolClient, threshold_scheme_client::ThresholdSchemeClient,
    total_order_client::TotalOrderClient,
};

use connection::Connection;
use credentials::Held;
use members::roster::{Present, Roster};

pub use self::{
    answer::{Answer, Culprit},
    credentials::Credentials,
    error::{
        ClientError, KeyDispute, NodeProblem, OpenError, Problem,
        text::{is_shown, one_line},
    },
    folder::{Checkpoint, ClientFile, LockError, changed_since, check_group, read_group},
    governance::explain_request,
    keys::{
        ListedKey,
        backup::BackUp,
        ceremonies::{CeremonyEnd, CeremonyOutcome, CeremonyProgress, Evidence},
        known::{KnownKey, KnownKeys},
        renewal::AgreedState,
        states::{KeyEnd, StateChanged, state_statement},
    },
    ledger::{Followed, GenesisFileError, genesis_of, read_kept_ledger},
    members::{MembersChanged, MembersProgress, TakenBack, roster::group_node},
    operations::{Answers, Coin, RandomizedSignature},
    options::ClientOptions,
    status::NodeStatus,
};
pub use theta_agreement::Member;
pub use theta_ledger::Ended as CeremonyEnded;
pub use theta_names::{Epoch, KeyRef, KeyState, Operation, Version};
pub use theta_statements::{
    Approval, CeremonyRequest, KeyChange, MemberRequest, SigningKey, StateChange, TakeBackRequest, Token, UnixTime,
    audit,
};

/// A client of one group. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Inner>,
    credentials: Arc<Held>,
}

#[derive(Debug)]
struct Inner {
    roster: Roster,
    known: Arc<KnownKeys>,
    options: ClientOptions,
    /// The client folder, if the client was opened from one.
    folder: Option<PathBuf>,
}

impl Client {
    /// Opens a client file, as `theta client new` writes it and [`ClientFile`] reads it; or a client folder: `group.toml`, `client.crt` and `client.key` unless the client is recognised by a token, and
    /// `keys/*.pub` if there are any. Connections are made when they are needed, so this succeeds while nodes are down.
    /// Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// [`OpenError`] names the file that is wrong, and what would be right.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_with(folder, ClientOptions::default())
    }

    /// [`Client::open`] with options.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(folder: &Path, options: ClientOptions) -> Result<Self, OpenError> {
        Self::of_parts(folder::read(folder)?, folder, options)
    }

    /// A client of a file that was read, and unlocked if a passphrase locks it. `path` is where it lies: what is checked of the group's
    /// ledger is kept beside it.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn of_file(file: ClientFile, path: &Path, options: ClientOptions) -> Result<Self, OpenError> {
        Self::of_parts(folder::parts_of(file, path)?, path, options)
    }

    fn of_parts(parts: folder::Parts, folder: &Path, options: ClientOptions) -> Result<Self, OpenError> {
        let folder::Parts { public, identity } = parts;
        let place = options.ledger.clone().or(Some(public.ledger));
        let known = KnownKeys::new(&public.group, public.keys, place).since(public.checkpoint);
        let keys = folder.is_dir().then(|| folder.to_owned());
        // A client file is as good as the fingerprint in it; whoever keeps a directory vouches for its group file.
        let roster = Roster::new(public.group, folder.is_dir(), identity.as_ref(), &options)?;
        Ok(Self::make(roster, known, options, keys))
    }

    /// A client from its parts. Without an identity it shows no certificate, and its requests need credentials
    /// ([`Client::with_credentials`]). The keys given here are trusted; others are asked from the nodes, as
    /// [`Client::public_key`] says. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// [`OpenError`] if an address in the group file is invalid.
    pub fn new(
        group: GroupFile,
        identity: Option<&Identity>,
        keys: impl IntoIterator<Item = (KeyName, AnyPublicKey)>,
        options: ClientOptions,
    ) -> Result<Self, OpenError> {
        let known = KnownKeys::new(&group, keys, options.ledger.clone());
        Ok(Self::make(Roster::new(group, true, identity, &options)?, known, options, None))
    }

    fn make(roster: Roster, known: KnownKeys, options: ClientOptions, folder: Option<PathBuf>) -> Self {
        let shared = Inner { roster, known: Arc::new(known), options, folder };
        Self { shared: Arc::new(shared), credentials: Arc::default() }
    }

    /// The group: its members as far as this client has checked the group's ledger. They change when the client learns of a change.
    #[must_use]
    pub fn group(&self) -> Arc<GroupFile> {
        Arc::clone(&self.present().group)
    }

    /// The group as the client was given it: with what its ledger begins ([`genesis_of`]) does not change.
    #[must_use]
    pub fn given_group(&self) -> &GroupFile {
        self.shared.roster.file()
    }

    fn present(&self) -> Arc<Present> {
        self.shared.roster.present(self.known().book(), &self.shared.options)
    }

    /// The connections to the present members.
    pub(crate) fn connections(&self) -> Vec<Connection> {
        self.present().connections.clone()
    }

    /// The public keys that this client knows, with all versions and epochs that the group's ledger has.
    #[must_use]
    pub fn known(&self) -> &Arc<KnownKeys> {
        &self.shared.known
    }

    /// The options of this client.
    #[must_use]
    pub fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    /// The scheme API of one node, for callers that carry shares themselves. Its answers are not checked.
    ///
    /// # Errors
    /// [`ClientError::UnknownNode`].
    pub fn scheme(&self, node: NodeId) -> Result<ThresholdSchemeClient, ClientError> {
        Ok(self.connection(node)?.scheme())
    }

    /// The protocol API of one node, for callers that want this node's answer. Its answers are not checked.
    ///
    /// # Errors
    /// [`ClientError::UnknownNode`].
    pub fn protocol(&self, node: NodeId) -> Result<ThresholdProtocolClient, ClientError> {
        Ok(self.connection(node)?.protocol())
    }

    /// Where the host of one node brings it the order of all and takes what it wants ordered, for programs that are its host.
    ///
    /// # Errors
    /// [`ClientError::UnknownNode`].
    pub fn total_order(&self, node: NodeId) -> Result<TotalOrderClient, ClientError> {
        Ok(self.connection(node)?.order())
    }

    fn connection(&self, node: NodeId) -> Result<Connection, ClientError> {
        let present = self.present();
        let found = present.connections.iter().find(|connection| connection.node == node);
        found.cloned().ok_or(ClientError::UnknownNode(node))
    }

    fn quorum(&self) -> usize {
        usize::from(self.shared.roster.file().threshold())
    }
}
