//! Certificates of authorities.

use rpki::repository::{Cert, x509::Validity};
use theta_rpki::registry::Authority;

use super::{IssueError, Run};
use crate::made::{self, MakeError, Stamp, time};

/// A certificate of an authority is renewed when less than this part of its time is left.
const RENEWED_AT: i64 = 4;

impl Run<'_> {
    /// Makes sure that an authority has the certificate that follows from today's data, for a while yet.
    pub(super) fn certify(&mut self, of: &Authority) -> Result<(), IssueError> {
        let registry = self.issuer.registry;
        let issuer = of.parent.as_deref().and_then(|parent| registry.authority(parent)).unwrap_or(of);
        if self.is_certified(of, issuer) {
            return Ok(());
        }
        match self.new_certificate(of, issuer) {
            Ok(()) => Ok(()),
            Err(Problem::Made(error)) => {
                self.fail(issuer, &of.certificate_name(), &error);
                Ok(())
            }
            Err(Problem::Run(error)) => Err(error),
        }
    }

    fn is_certified(&self, of: &Authority, issuer: &Authority) -> bool {
        let published = self.issuer.output.published(of.certificate.as_str());
        let Some(Ok(certificate)) = published.map(|bytes| Cert::decode(bytes.as_slice())) else { return false };
        let validity = certificate.validity();
        let wanted = made::certificate(self.issuer.registry, of, issuer, certificate.serial_number(), validity);
        let left = validity.not_after().timestamp().saturating_sub(self.issuer.now);
        wanted.is_ok_and(|wanted| made::signed_part(&wanted) == made::signed_part(&certificate))
            && left > self.issuer.registry.terms.longest_authority / RENEWED_AT
    }

    fn new_certificate(&mut self, of: &Authority, issuer: &Authority) -> Result<(), Problem> {
        self.make_room(issuer, &of.certificate_name())?;
        let lasts = self.issuer.registry.terms.longest_authority;
        let Stamp { now, until, serial } = self.asked(issuer, &of.certificate_name(), "", lasts)?;
        let validity = Validity::new(time(now), time(until));
        let wanted = made::certificate(self.issuer.registry, of, issuer, serial.into(), validity)?;
        self.state.save().map_err(IssueError::from)?;
        let bytes = made::sign_certificate(self.issuer.hands, issuer, wanted)?;
        self.signed(issuer, serial);
        self.issuer.output.put(&bytes).map_err(IssueError::from)?;
        self.issuer.output.publish(of.certificate.as_str(), &bytes).map_err(IssueError::from)?;
        self.report.certificates = self.report.certificates.saturating_add(1);
        Ok(())
    }

    /// Notes that a certificate was signed.
    pub(super) fn signed(&mut self, issuer: &Authority, serial: u64) {
        let certificates = &mut self.known().of(&issuer.name).certificates;
        if let Some(certified) = certificates.iter_mut().find(|certified| certified.serial == serial) {
            certified.is_signed = true;
        }
    }
}

/// Why something is not done: because it was not signed, which concerns one authority, or because the run cannot go on.
#[derive(Debug)]
pub(super) enum Problem {
    Made(MakeError),
    Run(IssueError),
}

impl From<MakeError> for Problem {
    fn from(error: MakeError) -> Self {
        Self::Made(error)
    }
}

impl From<IssueError> for Problem {
    fn from(error: IssueError) -> Self {
        Self::Run(error)
    }
}
