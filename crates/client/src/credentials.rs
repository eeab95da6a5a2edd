//! What a client presents besides the certificate of its connections: a token, its signature, approvals of others.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use theta_names::{NodeId, Operation};
use theta_network::Fingerprint;
use theta_statements::{
    Approval, Ask, Digest, MOST_APPROVALS, RequestTerms, SignedRequest, SigningKey, Token, UnixTime, Validity,
};
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
};

use crate::{Client, ClientError, connection::Connection};

/// A signed request is valid from this long before it was made, since clocks differ; in milliseconds.
const BEFORE: u64 = 60_000;
/// How long a signed request stays valid after it was made, in milliseconds: long enough for slow nodes.
const AFTER: u64 = 300_000;
/// The same for what the group decides once: as long as a node's consent to it stands.
const LONG_AFTER: u64 = 5 * 86_400_000;
/// The same for changes of the members, which nodes tell each other, too: under an hour, so that nobody brings one again that was given up, and
/// puts a machine into a place that was thrown away since.
const MEMBERS_AFTER: u64 = 50 * 60_000;

/// A proof of a token is good from this long before it was made, in milliseconds, and as long after it is made anew: clocks may differ so much.
const PROOF_MARGIN: u64 = 20 * 60_000;
/// How long a proof is used before another one is made, in milliseconds.
const PROOF_USE: u64 = 15 * 60_000;

/// What a client sends with each request, besides the certificate of its connections.
#[derive(Debug, Default)]
pub struct Credentials {
    /// A token. It is sent to nobody: each node gets a proof that is good for that node alone ([`theta_statements::TokenProof`]).
    pub token: Option<Token>,
    /// Signs each request. The caller is then the owner of this key, whoever delivers the request.
    pub signer: Option<SigningKey>,
    /// Approvals of what is asked. There may be others among them, which go with the requests that they are about.
    pub approvals: Vec<Approval>,
}

/// A client's credentials, and the proofs of its token that are in use.
#[derive(Debug, Default)]
pub(crate) struct Held {
    credentials: Credentials,
    /// By the TLS key of the node that each is for.
    proofs: Mutex<BTreeMap<Fingerprint, Proof>>,
}

#[derive(Debug)]
struct Proof {
    header: MetadataValue<Ascii>,
    made: UnixTime,
}

impl Held {
    /// The header by which the token proves itself to the node with this TLS key.
    fn proof(&self, node: Fingerprint) -> Option<MetadataValue<Ascii>> {
        let token = self.credentials.token.as_ref()?;
        let now = UnixTime::now();
        let mut proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back makes a new one, too.
        let in_use = |proof: &&Proof| (proof.made..proof.made.plus(PROOF_USE)).contains(&now);
        if let Some(proof) = proofs.get(&node).filter(in_use) {
            return Some(proof.header.clone());
        }
        let validity =
            Validity { from: UnixTime(now.0.saturating_sub(PROOF_MARGIN)), until: now.plus(PROOF_USE + PROOF_MARGIN) };
        // A proof is plain ASCII.
        let text = token.prove(node.as_bytes(), validity).to_text();
        let mut header = MetadataValue::try_from(format!("Theta {text}")).ok()?;
        header.set_sensitive(true);
        proofs.insert(node, Proof { header: header.clone(), made: now });
        Some(header)
    }
}

/// The credentials of one request, the same for all nodes but for the proof of the token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Enclosed {
    token: Option<Arc<Held>>,
    pub(crate) signed_request: Bytes,
    pub(crate) approvals: Vec<Bytes>,
}

impl Enclosed {
    /// Makes the request to the node of this connection, which is to be sent by it alone.
    pub(crate) fn request<R>(&self, to: &Connection, message: R, patience: Duration) -> Request<R> {
        let mut request = Request::new(message);
        request.set_timeout(patience);
        if let Some(proof) = self.token.as_ref().and_then(|held| held.proof(to.expected)) {
            request.metadata_mut().insert("authorization", proof);
        }
        request
    }
}

impl Client {
    /// The same client with other credentials. Both share the connections.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Arc::new(Held { credentials, proofs: Mutex::default() });
        self
    }

    /// The `authorization` header by which this client's token proves itself to one node, for callers of that node's API; `None` without a
    /// token. It is good there alone, and for 20 to 35 minutes more; whoever has it is this client there, so it is sent to nobody else.
    ///
    /// # Errors
    /// [`ClientError::UnknownNode`].
    pub fn authorization(&self, node: NodeId) -> Result<Option<MetadataValue<Ascii>>, ClientError> {
        Ok(self.credentials.proof(self.connection(node)?.expected))
    }

    /// An operation of this client's group on this statement, for those who approve or sign it elsewhere.
    #[must_use]
    pub fn ask_for<'a>(&'a self, operation: Operation, key: Option<&'a str>, statement: &'a [u8]) -> Ask<'a> {
        Ask { key, statement, ..Ask::new(self.given_group().name(), operation) }
    }

    /// The credentials of a request that cannot be signed, because it changes nothing.
    pub(crate) fn enclose_token(&self) -> Enclosed {
        let token = self.credentials.credentials.token.is_some().then(|| Arc::clone(&self.credentials));
        Enclosed { token, ..Enclosed::default() }
    }

    /// The credentials of this ask.
    pub(crate) fn enclose(&self, ask: &Ask<'_>) -> Result<Enclosed, ClientError> {
        self.enclose_until(ask, AFTER)
    }

    /// The credentials of what the whole group is asked for. Nodes tell each other of it, and one that is down now may be asked later.
    pub(crate) fn enclose_for_group(&self, ask: &Ask<'_>) -> Result<Enclosed, ClientError> {
        self.enclose_until(ask, LONG_AFTER)
    }

    /// The credentials of a change of the members.
    pub(crate) fn enclose_for_members(&self, ask: &Ask<'_>) -> Result<Enclosed, ClientError> {
        self.enclose_until(ask, MEMBERS_AFTER)
    }

    fn enclose_until(&self, ask: &Ask<'_>, after: u64) -> Result<Enclosed, ClientError> {
        let signed_request = match &self.credentials.credentials.signer {
            None => Bytes::new(),
            Some(signer) => {
                let now = UnixTime::now();
                let validity = Validity { from: UnixTime(now.0.saturating_sub(BEFORE)), until: now.plus(after) };
                let terms = RequestTerms::of(ask, validity, random()?)
                    .map_err(|error| ClientError::Unsigned(error.to_string()))?;
                SignedRequest::sign(terms, signer).encode().into()
            }
        };
        // What is sent may stand in the ledger for ever. If none is about this, the nodes say what they are about.
        let (all, statement) = (&self.credentials.credentials.approvals, Digest::of(ask.statement));
        let about = |approval: &&Approval| approval.terms().statement == statement;
        let apt: Vec<&Approval> = all.iter().filter(about).collect();
        let sent = if apt.is_empty() { all.iter().collect() } else { apt };
        let approvals = sent.into_iter().take(MOST_APPROVALS).map(|approval| approval.encode().into()).collect();
        Ok(Enclosed { signed_request, approvals, ..self.enclose_token() })
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ClientError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ClientError::Unsigned(format!("no randomness: {error}")))?;
    Ok(bytes)
}
