//! Permissions that only the gate creates.

use core::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use theta_names::{Label, Operation};
use theta_policy::SlotClaim;
use theta_statements::Name;

/// A request that this node's policy allows to a client that it knows, and whose record is as durable as the policy
/// demands.
///
/// Orchestration takes nothing else, so a front end that forgets to ask the gate does not compile. Each decision makes
/// one; it cannot be cloned, and carrying the request out uses it up.
///
/// No other crate can make one. (Code with a policy of its own, such as the simulator, can set up its own
/// [`Gate`](crate::Gate). In the product only this crate names `Gate`, which a rule of `cargo xtask tidy` checks.)
///
/// ```compile_fail,E0451
/// use theta_authority::{Granted, Terms};
/// fn forge<R>(request: R, terms: Terms) -> Granted<R> {
///     Granted { request, terms, claims: Vec::new(), is_copy: false }
/// }
/// ```
///
/// It can be used once:
///
/// ```compile_fail,E0382
/// use theta_authority::Granted;
/// fn twice<R>(granted: Granted<R>) -> (R, R) {
///     (granted.into_request(), granted.into_request())
/// }
/// ```
///
/// What can be done with one:
///
/// ```
/// use theta_authority::{Granted, Terms};
/// fn once<R>(granted: Granted<R>) -> (Terms, R) {
///     (granted.terms().clone(), granted.into_request())
/// }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Granted<R> {
    request: R,
    terms: Terms,
    claims: Vec<SlotClaim>,
    is_copy: bool,
}

/// Which client was allowed what, by which rule. Like [`Granted`], to which it belongs, only the gate makes it:
///
/// ```compile_fail,E0451
/// use theta_authority::Terms;
/// fn forge(client: theta_statements::Name, operation: theta_names::Operation) -> Terms {
///     Terms { client, key: None, operation, label: theta_names::Label::default(), rule: None }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub(crate) client: Name,
    pub(crate) key: Option<String>,
    pub(crate) operation: Operation,
    pub(crate) label: Label<Bytes>,
    pub(crate) rule: Option<Name>,
}

impl Terms {
    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Name {
        &self.client
    }

    /// The key, if any, without its version.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The operation.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// The label of the ciphertext, empty if there is none.
    #[must_use]
    pub const fn label(&self) -> &Label<Bytes> {
        &self.label
    }

    /// The rule that allowed it.
    #[must_use]
    pub const fn rule(&self) -> Option<&Name> {
        self.rule.as_ref()
    }
}

/// The client for whose account an instance runs, so far as its room at this node is concerned: the one that started
/// it.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The name under which results are counted.
    pub name: Arc<str>,
    /// How many bytes of results it may have. When there is no room for all results, those of clients with more than
    /// that are dropped first.
    pub result_bytes: usize,
    /// Its place among the running instances. Dropping it gives it back: when the instance ends, or at once if none is
    /// started.
    pub place: Arc<dyn Any + Send + Sync>,
}

impl<R> Granted<R> {
    pub(crate) const fn new(request: R, terms: Terms, claims: Vec<SlotClaim>, is_copy: bool) -> Self {
        Self { request, terms, claims, is_copy }
    }

    /// Whether the client's signed request had been allowed before, and somebody has brought a copy of it.
    #[must_use]
    pub const fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// The request that was allowed.
    pub const fn request(&self) -> &R {
        &self.request
    }

    /// The client and the rule.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The client that was allowed it.
    #[must_use]
    pub const fn client(&self) -> &Name {
        &self.terms.client
    }

    /// The slots that must be certified before anything that depends on a secret leaves for this request.
    #[must_use]
    pub fn claims(&self) -> &[SlotClaim] {
        &self.claims
    }

    /// The request, to be carried out now; the permission is used up.
    pub fn into_request(self) -> R {
        self.request
    }
}
