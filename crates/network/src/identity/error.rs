//! What can be wrong with an identity, in words for whoever keeps its files.

use core::fmt;
use std::{io, path::PathBuf};

/// Why an identity could not be loaded or made. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read.
    #[error("cannot read {what} {}: {source}", path.display())]
    Read {
        /// Which of the two files.
        what: PemKind,
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The private key can be read by others than its owner.
    #[error("the private key {} can be read by others (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    KeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file holds something else.
    #[error("{} is not {what}: {reason}; it must be a PEM file with a {} section", path.display(), what.section())]
    Malformed {
        /// What the file should be.
        what: PemKind,
        /// The file, or what was given in its place.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The private key belongs to another certificate.
    #[error("{} is not the private key of the certificate {}; give the pair made together", key.display(), certificate.display())]
    Mismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// The new certificate could not be written.
    #[error("cannot write the renewed certificate {}: {source}", path.display())]
    Write {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate could not be made.
    #[error("cannot make a certificate for {name:?}: {reason}")]
    Generate {
        /// For whom.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// One of the two files of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemKind {
    /// The public part.
    Certificate,
    /// The secret part.
    PrivateKey,
}

impl PemKind {
    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::Certificate => "CERTIFICATE",
            Self::PrivateKey => "PRIVATE KEY",
        }
    }
}

impl fmt::Display for PemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "the certificate",
            Self::PrivateKey => "the private key",
        })
    }
}
