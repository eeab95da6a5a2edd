//! New certificates of old keys.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use rcgen::KeyPair;

use super::{Identity, IdentityError, PemKind, Subject, issue, read};

const DAY: u64 = 24 * 60 * 60;
/// A certificate is renewed when it has less than this left.
const RENEWED_WITH: u64 = 60 * DAY;
/// Somebody should look when it has less than this left, since renewing it must have failed for a month.
const WARNED_WITH: u64 = 30 * DAY;

impl Identity {
    /// Whether the certificate should be renewed now (seconds since 1970): it has less than 60 days left, or is not valid yet, as one
    /// that was made while the clock was ahead. One that somebody else issued is theirs to renew.
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        let shown = self.shown.now();
        let due = |period: super::Period| now < period.from || period.until < now.saturating_add(RENEWED_WITH);
        shown.is_own && shown.period.is_some_and(due)
    }

    /// Whether the certificate is one that this software has made, which it may replace.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.shown.now().is_own
    }

    /// The days that the certificate has left, if somebody should look: less than 30. Negative if it has ended.
    #[must_use]
    pub fn days_to_warn_of(&self, now: u64) -> Option<i64> {
        let until = self.period()?.until;
        if until >= now.saturating_add(WARNED_WITH) {
            return None;
        }
        let seconds = i64::try_from(until).ok()?.saturating_sub(i64::try_from(now).ok()?);
        Some(seconds.div_euclid(i64::try_from(DAY).ok()?))
    }

    /// Makes a new certificate of the same key, valid for a year, puts it into the place of the file `certificate`, and shows it in
    /// all handshakes from now on. Nobody has to pin anything anew. `key` is the file of the private key.
    ///
    /// # Errors
    /// [`IdentityError`]; then the old certificate stays, in its file and in handshakes.
    pub fn renew(&self, certificate: &Path, key: &Path, subject: &Subject, now: u64) -> Result<(), IdentityError> {
        let key_pem = read(PemKind::PrivateKey, key)?;
        let malformed = |reason: &str| IdentityError::Malformed {
            what: PemKind::PrivateKey,
            path: key.into(),
            reason: reason.to_owned(),
        };
        // The parser's errors could quote the key, so they are not passed on.
        let text = core::str::from_utf8(&key_pem).map_err(|_| malformed("no readable section"))?;
        let pair = KeyPair::from_pem(text).map_err(|_| malformed("no usable key in it"))?;
        let year = issue::a_year(now);
        // Where the clock is outside of the old period, it is wrong now or was wrong then: the new period holds for both.
        let period = match self.period().filter(|_| self.is_own()) {
            Some(old) if now < old.from => super::Period { from: year.from, until: old.until.max(year.until) },
            Some(old) if now > old.until => super::Period { from: old.from, until: year.until },
            _ => year,
        };
        let pem = issue::certify(&pair, subject, period)?.pem();
        let new = Self::from_bytes(pem.as_bytes(), &key_pem, certificate, key)?;
        if new.fingerprint != self.fingerprint {
            return Err(IdentityError::Mismatch { certificate: certificate.into(), key: key.into() });
        }
        let written = replace(certificate, pem.as_bytes());
        written.map_err(|source| IdentityError::Write { path: certificate.into(), source })?;
        self.shown.replace(new.shown.now());
        Ok(())
    }
}

/// The file has its old contents or the new ones, whatever happens.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&new, path));
    if renamed.is_err() {
        // What is left of it would be in nobody's way, and the error is the one to tell of.
        let _ = fs::remove_file(&new);
    }
    renamed
}
