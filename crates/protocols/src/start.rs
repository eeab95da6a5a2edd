//! From a key and a statement to a running protocol.

use std::sync::Arc;

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_groups::{Secret, Transcript};
use theta_rounds::{Abort, Bug, Driver, Effect, Effects, Input, LockStep, Machine, PartyId};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, SchemeError};
use theta_schemes::{Answer, Delivery, RequestError, Statement, Unproven};

use crate::one_round::OneRound;
use crate::parties::parties;
use crate::{AnyMachine, Ask, Misbehaviour, Outcome, Supply};
use crate::{ecdsa, frost};

/// Builds the state machine for one request at the party that holds `share`. Whatever can be checked about the request
/// is checked here, before any share is made. The machine itself starts with [`Input::Start`].
///
/// If `share` is of another key than `public`, the machine ends at its start with [`Abort::Bug`].
///
/// # Errors
/// [`RequestError`]: the caller's mistake, or a ciphertext that is not valid.
pub fn start<'a>(
    public: &AnyPublicKey,
    share: &Arc<AnyKeyShare>,
    statement: impl Into<Statement<'a>>,
) -> Result<AnyMachine, RequestError> {
    begin(public, share, statement.into(), Options::default())
}

/// How a machine is to go about a request.
#[derive(Debug, Default)]
pub struct Options {
    /// The key's delivery, on which all its holders have agreed. FROST has k signers, chosen by its coordinator, with every
    /// delivery.
    pub delivery: Delivery,
    /// What concerns FROST alone.
    pub frost: frost::Options,
    /// What concerns ECDSA alone.
    pub ecdsa: ecdsa::Options,
}

/// As [`start`], with options. With a seed for FROST, the machine of a scheme that has no re-randomised keys ends at its
/// start with [`Abort::Bug`]; the caller should refuse such a request before.
///
/// # Errors
/// As [`start`].
pub fn start_with<'a>(
    public: &AnyPublicKey,
    share: &Arc<AnyKeyShare>,
    statement: impl Into<Statement<'a>>,
    options: Options,
) -> Result<AnyMachine, RequestError> {
    begin(public, share, statement.into(), options)
}

/// As [`start_with`], with a proof in the statement unchecked where those of many are checked for less together. The machine comes out when the
/// proof holds ([`prove_together`](theta_schemes::prove_together)).
///
/// # Errors
/// As [`start_with`].
pub fn start_unproven<'a>(
    public: &AnyPublicKey,
    share: &Arc<AnyKeyShare>,
    statement: impl Into<Statement<'a>>,
    options: Options,
) -> Result<Unproven<AnyMachine>, RequestError> {
    let statement = statement.into();
    if options.frost.seed.is_some() {
        return begin(public, share, statement, options).map(Unproven::from);
    }
    match public.answer_unproven(share, statement) {
        Ok(answer) => {
            let answer = answer.with_share_if(|| {
                let local = PartyId::of_share(share.index());
                options.delivery != Delivery::Quorum
                    || OneRound::is_drawn(local, public.threshold(), public.key_id(), &statement)
            });
            Ok(answer.map(|answer| one_round(public, share, statement, options.delivery, answer)))
        }
        Err(SchemeError::Request(error)) => Err(error),
        // Whoever has two rounds, or another key's share.
        Err(_) => begin(public, share, statement, options).map(Unproven::from),
    }
}

/// The machine of a request that is safe to answer when it starts.
fn one_round(
    public: &AnyPublicKey,
    share: &Arc<AnyKeyShare>,
    statement: Statement<'_>,
    delivery: Delivery,
    answer: Arc<dyn Answer>,
) -> AnyMachine {
    let (threshold, purpose) = (public.threshold(), public.suite().purpose());
    if !threshold.contains(share.index()) {
        return Unusable::share();
    }
    let local = PartyId::of_share(share.index());
    let protocol = OneRound::new(local, threshold, purpose, answer, share_seed(share, &statement));
    let protocol = protocol.delivered(delivery, public.key_id(), &statement);
    Box::new(Driver::new(local, parties(threshold), LockStep::new(protocol)))
}

fn begin(
    public: &AnyPublicKey,
    share: &Arc<AnyKeyShare>,
    statement: Statement<'_>,
    Options { delivery, frost: options, ecdsa }: Options,
) -> Result<AnyMachine, RequestError> {
    let threshold = public.threshold();
    let ours = share.key_id() == public.key_id() && threshold.contains(share.index());
    if !ours {
        return Ok(Unusable::share());
    }
    match (public.answer(share, statement), options.seed) {
        (Err(SchemeError::TwoRounds(_)), seed) => {
            public.check_request(statement)?;
            let message = Bytes::copy_from_slice(statement.bytes());
            let machine = frost::machine(public, share, &message, &frost::Options { seed, ..options });
            Ok(machine.unwrap_or_else(Unusable::share))
        }
        (_, Some(_)) => Ok(Unusable::seed()),
        (Ok(answer), None) => Ok(one_round(public, share, statement, delivery, answer)),
        (Err(SchemeError::Request(error)), None) => Err(error),
        (Err(SchemeError::Preprocessed(_)), None) => {
            public.check_request(statement)?;
            let (majority, security) = (ecdsa::Majority::of(delivery), ecdsa::Security::of(delivery));
            let ecdsa = ecdsa::Options { majority, security, ..ecdsa };
            Ok(ecdsa::machine(public, share, &statement, &ecdsa).unwrap_or_else(Unusable::share))
        }
        (Err(_), None) => Ok(Unusable::share()),
    }
}

/// The seed of a share's randomness. It is derived from the secret key share and the statement, in the manner of RFC
/// 6979, so that a node makes the same share of the same request every time. With fresh randomness, a node that is
/// killed and asked again would send other bytes than before, and its peers could not tell that from equivocation.
fn share_seed(key: &AnyKeyShare, statement: &Statement<'_>) -> Secret<[u8; 32]> {
    let secret = key.secret_bytes();
    let seed = Transcript::new("theta/one-round/share-seed/v1")
        .with("key id", key.key_id().as_bytes())
        .with("secret", secret.expose())
        .with("operation", statement.operation().as_bytes())
        .with("statement", statement.bytes());
    Secret::new(seed.finish32())
}

/// A machine for requests that cannot run: at its start it ends and says why.
struct Unusable {
    reason: &'static str,
    finished: bool,
}

impl Unusable {
    fn share() -> AnyMachine {
        Box::new(Self { reason: "the key share belongs to another key", finished: false })
    }

    fn seed() -> AnyMachine {
        Box::new(Self { reason: "a seed for a scheme without re-randomised keys", finished: false })
    }
}

impl Machine for Unusable {
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;
    type Ask = Ask;
    type Supply = Supply;

    fn handle(&mut self, input: Input<Supply>, _rng: &mut dyn CryptoRng) -> Effects<Self> {
        if self.finished || !matches!(input, Input::Start) {
            return Vec::new();
        }
        self.finished = true;
        vec![Effect::Finished(Err(Abort::Bug(Bug(self.reason))))]
    }

    fn contributions(&self) -> (usize, usize) {
        (0, 0)
    }

    fn awaits(&self, _party: PartyId) -> bool {
        false
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}
