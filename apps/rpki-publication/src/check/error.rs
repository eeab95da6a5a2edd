use rpki::{
    repository::x509::{Serial, Time},
    uri::Rsync,
};

/// Why objects are not published; or what is wrong with some that are published as they were, in which case it is a warning.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There are no objects at all.
    #[error("the folder has no objects; to take a repository away, end its publication")]
    Empty,
    /// An object cannot be parsed.
    #[error("{uri} cannot be read: {reason}")]
    Unparseable {
        /// The object.
        uri: Rsync,
        /// What the parser says.
        reason: String,
    },
    /// The ending of a name says nothing about what the object is.
    #[error("{uri}: its name ends in none of .mft, .crl, .cer, .roa, .asa, .gbr, .tak and .spl")]
    Kind {
        /// The object.
        uri: Rsync,
    },
    /// A manifest lists what is not there.
    #[error("{manifest} lists {file}, which is not in the folder")]
    Missing {
        /// The manifest.
        manifest: Rsync,
        /// The name on it.
        file: String,
    },
    /// An object is not the one that the manifest lists.
    #[error("{uri} has another hash than {manifest} lists")]
    Hash {
        /// The manifest.
        manifest: Rsync,
        /// The object.
        uri: Rsync,
    },
    /// An object is on no manifest, and no certificate of a trust anchor.
    #[error("{uri} is on no manifest")]
    Unlisted {
        /// The object.
        uri: Rsync,
    },
    /// An object is listed twice.
    #[error("{uri} is listed twice, by {first} and by {second}; each object is on one manifest, once")]
    Twice {
        /// The object.
        uri: Rsync,
        /// The URI of one manifest.
        first: String,
        /// That of the other one, or the same.
        second: String,
    },
    /// A manifest does not list exactly one CRL.
    #[error("{manifest} lists {count} CRLs; it would be one (RFC 9286)")]
    Crls {
        /// The manifest.
        manifest: Rsync,
        /// How many it lists.
        count: usize,
    },
    /// A manifest or CRL is not current, or a trust anchor's certificate is not valid.
    #[error("{uri} is for {} to {}; it is not current", .from.to_rfc3339(), .until.to_rfc3339())]
    NotCurrent {
        /// The manifest, CRL or certificate.
        uri: Rsync,
        /// The later of its thisUpdate and the beginning of its certificate.
        from: Time,
        /// The earlier of its nextUpdate and the end of its certificate.
        until: Time,
    },
    /// A manifest or CRL is older than the one that is published, or has its number.
    #[error(
        "{uri} has the number {offered}, and another one with {published} is published; numbers go up with every change"
    )]
    Older {
        /// The manifest or CRL.
        uri: Rsync,
        /// The number that is published.
        published: Serial,
        /// The number in the folder.
        offered: Serial,
    },
    /// A manifest has the time of issue of the one that is published, or an earlier one.
    #[error(
        "{uri} is of {}, and another one of {} is published; times of issue go up with every change, or relying parties keep the one they have",
        .offered.to_rfc3339(),
        .published.to_rfc3339()
    )]
    NotLater {
        /// The manifest.
        uri: Rsync,
        /// The thisUpdate that is published.
        published: Time,
        /// The thisUpdate in the folder.
        offered: Time,
    },
    /// An authority has a certificate in the folder and publishes in a module of it, but has no manifest there.
    #[error(
        "{manifest} is not in the folder, and {certificate} says that it is there: the objects of that authority are missing; if it has none yet, --without {manifest}"
    )]
    MissingPoint {
        /// The certificate.
        certificate: Rsync,
        /// The manifest that it names.
        manifest: Rsync,
    },
    /// A signed object is not signed by the key of the certificate in it, or has another content than was signed.
    #[error("{uri}: its signature is wrong under the certificate in it")]
    Signature {
        /// The object.
        uri: Rsync,
    },
    /// A CRL, a certificate, or the certificate in a signed object is not signed by the authority whose manifest lists it.
    #[error("{uri} is not signed with the key of {certificate}")]
    Issuer {
        /// The object.
        uri: Rsync,
        /// The certificate of the authority.
        certificate: Rsync,
    },
}

impl CheckError {
    /// A word for programs, which does not change, and the object that it is about, if it is about one.
    #[must_use]
    pub fn code(&self) -> (&'static str, Option<&Rsync>) {
        match self {
            Self::Empty => ("empty", None),
            Self::Unparseable { uri, .. } => ("unparseable", Some(uri)),
            Self::Kind { uri } => ("kind", Some(uri)),
            Self::Missing { manifest, .. } => ("missing", Some(manifest)),
            Self::Hash { uri, .. } => ("hash", Some(uri)),
            Self::Unlisted { uri } => ("unlisted", Some(uri)),
            Self::Twice { uri, .. } => ("twice", Some(uri)),
            Self::Crls { manifest, .. } => ("crls", Some(manifest)),
            Self::NotCurrent { uri, .. } => ("not-current", Some(uri)),
            Self::Older { uri, .. } => ("older", Some(uri)),
            Self::NotLater { uri, .. } => ("not-later", Some(uri)),
            Self::MissingPoint { manifest, .. } => ("missing-point", Some(manifest)),
            Self::Signature { uri } => ("signature", Some(uri)),
            Self::Issuer { uri, .. } => ("issuer", Some(uri)),
        }
    }
}
