//! Certificates of authorities.

use rpki::repository::{Cert, x509::Validity};
use theta_rpki::registry::Authority;

use super::{IssueError, Run, points::unwritten};
use crate::{
    made::{self, MakeError, Stamp, time},
    state::SerialNumber,
};

/// A certificate of an authority is renewed when less than this part of its time is left.
const RENEWED_AT: i64 = 4;

impl Run<'_> {
    /// Makes sure that an authority has the certificate that follows from today's data, for a while yet. If it is not signed, the one that is there stays: other
    /// registries may not have today's data yet.
    pub(super) fn certify(&mut self, of: &Authority) -> Result<(), IssueError> {
        let registry = self.issuer.registry;
        let issuer = registry.parent(of).unwrap_or(of);
        if self.is_certified(of, issuer) {
            return Ok(());
        }
        match self.new_certificate(of, issuer) {
            Ok(()) => Ok(()),
            Err(Problem::Made(error)) => {
                self.fail_again(issuer, &of.certificate_name(), &error);
                Ok(())
            }
            Err(Problem::Run(error)) => Err(error),
        }
    }

    /// The last certificate that was made for an authority, which may not be published yet, and its bytes.
    pub(super) fn last_certificate(&self, of: &Authority) -> Option<(Cert, Vec<u8>)> {
        let output = self.issuer.output;
        let parent = of.parent.as_ref().and_then(|parent| self.state.state.authorities.get(parent));
        let made = parent.and_then(|issued| issued.children.get(&of.certificate_name()));
        let made = made.and_then(|digest| output.find(digest));
        let bytes = made.or_else(|| output.published(of.certificate.as_str()))?;
        Some((Cert::decode(bytes.as_slice()).ok()?, bytes))
    }

    /// Whether the last certificate of an authority is another one than that which is published.
    pub(super) fn has_new_certificate(&self, of: &Authority) -> bool {
        let last = self.last_certificate(of).map(|(_, bytes)| bytes);
        last.is_some() && last != self.issuer.output.published(of.certificate.as_str())
    }

    fn is_certified(&self, of: &Authority, issuer: &Authority) -> bool {
        let Some((certificate, _)) = self.last_certificate(of) else { return false };
        let validity = certificate.validity();
        let wanted = made::certificate(self.issuer.registry, of, issuer, certificate.serial_number(), validity);
        let left = validity.not_after().timestamp().saturating_sub(self.issuer.now);
        wanted.is_ok_and(|wanted| made::signed_part(&wanted) == made::signed_part(&certificate))
            && left > self.issuer.registry.terms.longest_authority / RENEWED_AT
    }

    fn new_certificate(&mut self, of: &Authority, issuer: &Authority) -> Result<(), Problem> {
        let file = of.certificate_name();
        if issuer.name == of.name {
            // Otherwise each run would have another one signed, for nothing.
            let address = of.certificate.as_str();
            self.issuer.output.try_place(address).map_err(|error| unwritten(address, &error))?;
        }
        self.wait(issuer, &file, self.recent())?;
        let lasts = self.issuer.registry.terms.longest_authority;
        let Stamp { now, until, serial, .. } = self.asked(issuer, &file, "", lasts)?;
        let validity = Validity::new(time(now), time(until));
        let wanted = made::certificate(self.issuer.registry, of, issuer, made::serial(serial)?, validity)?;
        self.state.save().map_err(IssueError::from)?;
        let bytes = made::sign_certificate(self.issuer.hands, issuer, wanted)?;
        self.signed(issuer, serial);
        let digest = self.issuer.output.put(&bytes).map_err(IssueError::from)?;
        if issuer.name == of.name {
            // No manifest has it.
            let address = of.certificate.as_str();
            self.issuer.output.publish(address, &bytes).map_err(|error| unwritten(address, &error))?;
        } else {
            self.known().of(&issuer.name).children.insert(file, digest);
        }
        self.report.certificates = self.report.certificates.saturating_add(1);
        Ok(())
    }

    /// Notes that a certificate was signed.
    pub(super) fn signed(&mut self, issuer: &Authority, serial: SerialNumber) {
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
