//! Making keys and certificates.

use core::{fmt, time::Duration};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SerialNumber, date_time_ymd};
use zeroize::Zeroizing;

use super::{Identity, IdentityError, Period};
use crate::Fingerprint;

/// How long a node's certificate is valid, in days.
const DAYS: u64 = 365;
const DAY: u64 = 24 * 60 * 60;
/// The last second of the year 9999, beyond which certificates have no dates.
const LAST: u64 = 253_402_300_799;

/// Whom a certificate is for. Pins decide, not names; but libraries in other languages insist on names that could be hosts'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    name: String,
    hosts: Vec<String>,
}

impl Subject {
    /// Somebody of this name, which is made a host's as well: `node 1` is found under `node-1`.
    ///
    /// # Errors
    /// [`IdentityError::Generate`] if `name` is empty or longer than the 64 characters of an X.509 common name.
    pub fn new(name: &str) -> Result<Self, IdentityError> {
        if name.is_empty() || name.chars().count() > 64 {
            let reason = "a certificate's name has 1 to 64 characters".to_owned();
            return Err(IdentityError::Generate { name: name.to_owned(), reason });
        }
        let host = name.to_lowercase().replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        Ok(Self { name: name.to_owned(), hosts: vec![host] })
    }

    /// Reached under this name or IP address, too.
    #[must_use]
    pub fn at(mut self, host: &str) -> Self {
        if !self.hosts.iter().any(|known| known == host) {
            self.hosts.push(host.to_owned());
        }
        self
    }
}

/// A fresh identity as text, to be written to files.
pub struct GeneratedIdentity {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// The private key, PKCS#8 PEM; wiped when dropped. Write it with mode 0600.
    pub key_pem: Zeroizing<String>,
    /// What others pin.
    pub fingerprint: Fingerprint,
}

impl Identity {
    /// Makes a key (ECDSA P-256) with a self-signed certificate for `name`, valid from 2020 to 2120: for clients, whose end is a
    /// matter of the policies that let them in. Nobody would renew it in their directories.
    ///
    /// # Errors
    /// As [`Subject::new`].
    pub fn generate(name: &str) -> Result<GeneratedIdentity, IdentityError> {
        // The first days of these years.
        make(&Subject::new(name)?, Period { from: 1_577_836_800, until: 4_733_510_400 })
    }

    /// Makes a key (ECDSA P-256) with a self-signed certificate for a node, valid for a year from `now`, in seconds since 1970.
    ///
    /// # Errors
    /// [`IdentityError::Generate`].
    pub fn generate_for_a_year(subject: &Subject, now: u64) -> Result<GeneratedIdentity, IdentityError> {
        make(subject, a_year(now))
    }
}

/// From a day before now, because clocks differ.
pub(super) const fn a_year(now: u64) -> Period {
    Period { from: now.saturating_sub(DAY), until: now.saturating_add(DAYS * DAY) }
}

fn make(subject: &Subject, period: Period) -> Result<GeneratedIdentity, IdentityError> {
    let pair = KeyPair::generate().map_err(|error| failed(subject, &error))?;
    let certificate = certify(&pair, subject, period)?;
    let fingerprint = Fingerprint::of(certificate.der());
    Ok(GeneratedIdentity {
        fingerprint: fingerprint.map_err(|error| failed(subject, &error))?,
        certificate_pem: certificate.pem(),
        key_pem: Zeroizing::new(pair.serialize_pem()),
    })
}

fn failed(subject: &Subject, reason: &dyn fmt::Display) -> IdentityError {
    IdentityError::Generate { name: subject.name.clone(), reason: reason.to_string() }
}

/// A certificate that the key signs for itself.
pub(super) fn certify(pair: &KeyPair, subject: &Subject, period: Period) -> Result<rcgen::Certificate, IdentityError> {
    let mut params = CertificateParams::new(subject.hosts.clone()).map_err(|error| failed(subject, &error))?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject.name.as_str());
    // Of one issuer, which is the name in it, no two have one number.
    params.serial_number = Some(SerialNumber::from(period.until));
    let time = |seconds: u64| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.min(LAST));
    (params.not_before, params.not_after) = (time(period.from), time(period.until));
    params.self_signed(pair).map_err(|error| failed(subject, &error))
}

impl fmt::Debug for GeneratedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedIdentity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}
