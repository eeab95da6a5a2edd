//! Builds the machine of a ceremony from its subject and plan, and a key of the suite from its outcome.

use std::sync::Arc;

use theta_ceremonies::{Ceremony, CeremonyKeys, CeremonyPlan, Conclusion, Memory, Outcome};
use theta_groups::Secret;
use theta_rounds::{Abort, Bug};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};

use super::Subject;
use crate::CeremonyError;

/// How a ceremony ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Activated { public: AnyPublicKey, share: Option<AnyKeyShare>, certificate: Vec<u8> },
    Aborted,
    Recovered { share: Option<AnyKeyShare> },
}

impl Ending {
    /// Converts an outcome to the suite's types. The ceremony has checked everything in it, so a key or share that the
    /// suite refuses is a bug.
    pub(crate) fn of(outcome: Outcome, subject: &Subject) -> Result<Self, Abort> {
        let no_key = |_| Abort::Bug(Bug("a ceremony gave a key that its suite refuses"));
        let no_share = |_| Abort::Bug(Bug("a ceremony gave a share that its key refuses"));
        match outcome.conclusion {
            Conclusion::Aborted(_) => Ok(Self::Aborted),
            Conclusion::Activated(activated) => {
                let public = AnyPublicKey::from_encoded(subject.suite, &activated.public).map_err(no_key)?;
                let share = activated.share.map(|share| AnyKeyShare::from_encoded(&public, &share));
                let share = share.transpose().map_err(no_share)?;
                Ok(Self::Activated { public, share, certificate: activated.certificate.encode() })
            }
            Conclusion::Recovered(share) => {
                let found = share.zip(subject.source.as_ref());
                let share = found.map(|(share, source)| AnyKeyShare::from_encoded(&source.public, &share));
                Ok(Self::Recovered { share: share.transpose().map_err(no_share)? })
            }
        }
    }
}

/// The machine of a ceremony, which starts with [`theta_rounds::Input::Start`]. The identity comes with the secret that
/// was drawn for this ceremony; `share` is this node's share of the source, if it has it.
///
/// # Errors
/// [`CeremonyError`] if this node has no part in it.
pub(crate) fn begin(
    plan: Arc<CeremonyPlan>,
    (keys, secret): (&Arc<CeremonyKeys>, Secret<[u8; 32]>),
    share: Option<&AnyKeyShare>,
    memory: Memory,
) -> Result<Ceremony, CeremonyError> {
    let share = share.and_then(AnyKeyShare::encoded);
    Ok(Ceremony::join(plan, Arc::clone(keys), secret, share.as_ref(), memory)?)
}
