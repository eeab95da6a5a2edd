//! The policy: clients and rules, checked and immutable. A decision changes only the [`State`] that it is given.

mod decide;
mod explain;
mod limits;
mod reason;
mod rule;
mod signing;

use std::collections::{BTreeSet, HashMap};

pub use decide::{Decision, State};
pub use explain::{Answer, ConditionReport, Explanation, RuleReport};
pub(crate) use limits::AllLimits;
pub use limits::Limits;
pub use reason::Reason;
pub(crate) use rule::{Clients, Quorum, Rule};
pub use rule::{Effect, Recording};
pub(crate) use signing::{SigningRule, SlotSource};

use theta_names::Operation;
use theta_statements::{Ask, Digest, Name, ProvenToken, SignedRequest, TokenKey, UnixTime};

use crate::request::Credential;
use crate::{Caller, Request, SlotRace, Unidentified};

/// Who may ask for what.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) credentials: HashMap<Credential, Name>,
    pub(crate) outdated: BTreeSet<Name>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) signing: Vec<SigningRule>,
    pub(crate) limits: AllLimits,
    pub(crate) digest: Digest,
}

impl Policy {
    /// The digest of the policy's file, which tells whether two nodes have the same.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The names of the rules, in the file's order.
    pub fn rules(&self) -> impl Iterator<Item = &Name> {
        self.rules.iter().map(|rule| &rule.name)
    }

    /// The names of the signing rules, in the file's order.
    pub fn signing_rules(&self) -> impl Iterator<Item = &Name> {
        self.signing.iter().map(|rule| &rule.name)
    }

    /// How much of a node a client may take.
    #[must_use]
    pub fn limits_of(&self, client: &Name) -> Limits {
        self.limits.of(client)
    }

    /// Whether the policy names no client, and so refuses everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.credentials.is_empty()
    }

    /// What is to be done about clients whose tokens are hashes here, as they were when tokens were sent whole to every node; such a token recognises
    /// nobody any more. `None` if there are none.
    #[must_use]
    pub fn outdated_tokens(&self) -> Option<String> {
        let names: Vec<&str> = self.outdated.iter().map(Name::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "tokens = [\"sha256:...\"] of {} recognises nobody: every node had such tokens whole. Have a new one made (theta token new) and put \
                 its line in that one's place",
                names.join(", ")
            )
        })
    }

    /// Whether any client is recognised by a token, so that connections without a certificate make sense.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.credentials.keys().any(|credential| matches!(credential, Credential::Token(_)))
    }

    /// Whether an allowed ask like this one takes a slot, so that [`Policy::decide`] may wait for the disk.
    #[must_use]
    pub fn takes_slot(&self, key: Option<&str>, operation: Operation) -> bool {
        let ask = Ask { key, ..Ask::new("", operation) };
        self.signing.iter().any(|signing| signing.covers(&ask))
    }

    /// Whether an allowed ask like this one takes a slot for which the hosts' order says who is first.
    #[must_use]
    pub fn may_race(&self, key: Option<&str>, operation: Operation) -> bool {
        let ask = Ask { key, ..Ask::new("", operation) };
        self.signing.iter().any(|signing| signing.ordered && signing.covers(&ask))
    }

    /// The slots that an ask takes if it is allowed, where the hosts' order says who is first.
    #[must_use]
    pub fn races(&self, ask: &Ask<'_>) -> Vec<SlotRace> {
        let covering = self.signing.iter().filter(|signing| signing.ordered && signing.covers(ask));
        let mut statement = None;
        let race =
            |signing: &SigningRule| signing.race(ask, *statement.get_or_insert_with(|| Digest::of(ask.statement)));
        covering.filter_map(race).collect()
    }

    /// The client whose certificate's public key has this SHA-256 fingerprint. That it holds the certificate's private key is for the
    /// connection to establish before.
    ///
    /// # Errors
    /// [`Unidentified::Certificate`].
    pub fn caller_by_certificate(&self, fingerprint: [u8; 32]) -> Result<Caller, Unidentified> {
        let fingerprint = Digest(fingerprint);
        self.caller(Credential::Certificate(fingerprint)).ok_or(Unidentified::Certificate(fingerprint))
    }

    /// The client whose token has proven itself.
    ///
    /// # Errors
    /// [`Unidentified::Token`].
    pub fn caller_by_token(&self, token: &ProvenToken) -> Result<Caller, Unidentified> {
        let key = token.key();
        self.caller(Credential::Token(key)).ok_or(Unidentified::Token(key))
    }

    /// Whether any client has a token with this key, so that it is worth a verification of what claims to be.
    #[must_use]
    pub fn has_token(&self, key: TokenKey) -> bool {
        self.credentials.contains_key(&Credential::Token(key))
    }

    /// The request of the client that signed exactly this ask, whoever sent it.
    ///
    /// # Errors
    /// [`Unidentified::Key`] or [`Unidentified::Signed`].
    pub fn signed_request<'a>(
        &self,
        signed: &SignedRequest,
        ask: Ask<'a>,
        now: UnixTime,
    ) -> Result<Request<'a>, Unidentified> {
        let signer = *signed.signer();
        let caller = self.caller(Credential::Key(signer)).ok_or(Unidentified::Key(signer))?;
        signed.verify(&ask, now)?;
        Ok(Request::new(caller, ask).signed(signed.id(), signed.terms().validity.until))
    }

    fn caller(&self, credential: Credential) -> Option<Caller> {
        self.credentials.get(&credential).map(|client| Caller::new(client.clone(), credential))
    }

    /// Whether the policy still has the credential by which the client was recognised.
    fn knows(&self, request: &Request<'_>) -> bool {
        self.credentials.get(request.credential()) == Some(request.client())
    }
}
