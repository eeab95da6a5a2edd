//! What only the gate gives.

use core::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use theta_names::{Label, Operation};
use theta_policy::SlotClaim;
use theta_statements::Name;

/// A request that this node's policy allows to a client that it knows, and whose record is where the policy wants it.
///
/// It is what orchestration takes, so that a front end that forgets to ask the gate does not compile. There is one for each
/// decision: it is not cloned, and doing what it allows uses it up.
///
/// Nobody else makes one. (Who has a policy of its own can set up a [`Gate`](crate::Gate) of its own, as the simulator does: in
/// the product only this crate names one, which a rule of `cargo xtask tidy` checks.)
///
/// ```compile_fail,E0451
/// use theta_authority::{Granted, Terms};
/// fn forge<R>(request: R, terms: Terms) -> Granted<R> {
///     Granted { request, terms, claims: Vec::new() }
/// }
/// ```
///
/// It serves once:
///
/// ```compile_fail,E0382
/// use theta_authority::Granted;
/// fn twice<R>(granted: Granted<R>) -> (R, R) {
///     (granted.into_request(), granted.into_request())
/// }
/// ```
///
/// What can be done with it:
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
}

/// Who was allowed what, by which rule. As a [`Granted`], which it is the terms of, only the gate makes it:
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
    /// Who.
    #[must_use]
    pub const fn client(&self) -> &Name {
        &self.client
    }

    /// With which key, if any; without its version.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What for.
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

/// Who asked, as far as this node's room goes: an instance is held to the account of whoever started it.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Whose results are counted together.
    pub name: Arc<str>,
    /// Bytes of results that are its: when there is no room for all results, whoever has more than that makes room first.
    pub result_bytes: usize,
    /// Its place among the running, given back (dropped) when the instance ends, or at once if none is started.
    pub place: Arc<dyn Any + Send + Sync>,
}

impl<R> Granted<R> {
    pub(crate) const fn new(request: R, terms: Terms, claims: Vec<SlotClaim>) -> Self {
        Self { request, terms, claims }
    }

    /// What was allowed.
    pub const fn request(&self) -> &R {
        &self.request
    }

    /// To whom, and by which rule.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Who was allowed it.
    #[must_use]
    pub const fn client(&self) -> &Name {
        &self.terms.client
    }

    /// What must be certified before anything that hangs on a secret leaves for it.
    #[must_use]
    pub fn claims(&self) -> &[SlotClaim] {
        &self.claims
    }

    /// What was allowed, to be done now; the leave is used up.
    pub fn into_request(self) -> R {
        self.request
    }
}
