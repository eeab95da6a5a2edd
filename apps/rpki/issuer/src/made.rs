//! What agents know how to recognise, made as they expect it: all of it follows from the registry's data, but for numbers and times.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use rpki::{
    crypto::{DigestAlgorithm, SigningError},
    dep::bcder::{Mode, Oid, encode::Values as _},
    oid,
    repository::{
        Cert,
        cert::{KeyUsage, Overclaim, TbsCert},
        crl::{CrlEntry, TbsCertList},
        manifest::{FileAndHash, ManifestContent},
        sigobj::SignedObjectBuilder,
        x509::{Serial, Time, Validity},
    },
    uri::Rsync,
};
use theta_names::WallTime;
use theta_rpki::{
    attestation::Attestation,
    registry::{Authority, Registry},
};

use crate::{
    hands::{Hands, Key, Pair, Unsigned},
    state::SerialNumber,
};

/// Why something is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MakeError {
    /// It is not signed.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// The object's own key has not signed, and no certificate was asked for.
    #[error(transparent)]
    Own(Unsigned),
    /// It was asked for often, and waits.
    #[error(
        "{objection}; that was the answer to the last of {times} tries within a day: the next one is in {minutes} minutes (at once with --retry)"
    )]
    Later {
        /// How often it was asked for.
        times: usize,
        /// When it will be again.
        minutes: i64,
        /// What was said last.
        objection: String,
    },
    /// An address of the registry's data and a file make none together.
    #[error("{0} is no address")]
    Address(String),
    /// A number of the state is none.
    #[error("{0} is no serial number")]
    Serial(String),
}

impl From<SigningError<Unsigned>> for MakeError {
    fn from(error: SigningError<Unsigned>) -> Self {
        match error {
            SigningError::Signer(unsigned) => Self::Unsigned(unsigned),
            other => Self::Unsigned(Unsigned(other.to_string())),
        }
    }
}

pub(crate) fn time(seconds: i64) -> Time {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Time::from(std::time::SystemTime::from(WallTime::since_1970(since)))
}

/// A serial number as the library has it.
pub(crate) fn serial(SerialNumber(number): SerialNumber) -> Result<Serial, MakeError> {
    Serial::from_array(number).map_err(|_| MakeError::Serial(hex::encode(number)))
}

fn address(of: &Authority, file: &str) -> Result<Rsync, MakeError> {
    let text = of.address(file);
    Rsync::from_string(text.clone()).map_err(|_| MakeError::Address(text))
}

/// The certificate of an authority as it follows from today's data, not signed.
pub(crate) fn certificate(
    registry: &Registry,
    of: &Authority,
    issuer: &Authority,
    serial: Serial,
    validity: Validity,
) -> Result<TbsCert, MakeError> {
    let mut certificate = TbsCert::new(
        serial,
        issuer.public.to_subject_name(),
        validity,
        None,
        of.public.clone(),
        KeyUsage::Ca,
        Overclaim::Refuse,
    );
    certificate.set_basic_ca(Some(true));
    certificate.set_ca_repository(Some(of.repository.clone()));
    certificate.set_rpki_manifest(Some(address(of, &of.manifest_name())?));
    certificate.set_rpki_notify(of.notify.clone());
    let resources = registry.resources(of);
    certificate.set_as_resources(resources.to_as_resources());
    certificate.set_v4_resources(resources.to_ip_resources_v4());
    certificate.set_v6_resources(resources.to_ip_resources_v6());
    if issuer.name != of.name {
        certificate.set_authority_key_identifier(Some(issuer.public.key_identifier()));
        certificate.set_crl_uri(Some(address(issuer, &issuer.list_name())?));
        certificate.set_ca_issuer(Some(issuer.certificate.clone()));
    }
    Ok(certificate)
}

/// What is signed of a certificate.
pub(crate) fn signed_part(certificate: &TbsCert) -> Vec<u8> {
    certificate.encode_ref().to_captured(Mode::Der).as_slice().to_vec()
}

/// Has a certificate signed.
pub(crate) fn sign_certificate(
    hands: &dyn Hands,
    issuer: &Authority,
    certificate: TbsCert,
) -> Result<Vec<u8>, MakeError> {
    let signer = Pair::new(hands, key_of(issuer), None);
    let certificate: Cert = certificate.into_cert(&signer, &())?;
    Ok(certificate.to_captured().as_slice().to_vec())
}

/// Why an object was not made: its own key signs first.
fn unmade(error: SigningError<Unsigned>, signer: &Pair<'_>) -> MakeError {
    match MakeError::from(error) {
        MakeError::Unsigned(unsigned) if !signer.is_authority_asked() => MakeError::Own(unsigned),
        other => other,
    }
}

fn key_of(authority: &Authority) -> Key<'_> {
    Key { name: &authority.key, public: &authority.public }
}

/// Times and numbers of something that is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// When it is signed.
    pub(crate) now: i64,
    /// When its certificate ends.
    pub(crate) until: i64,
    /// The certificate's serial number.
    pub(crate) serial: SerialNumber,
    /// Whether nobody was asked for it before.
    pub(crate) is_new: bool,
}

fn builder(issuer: &Authority, file: &str, stamp: Stamp) -> Result<SignedObjectBuilder, MakeError> {
    let mut builder = SignedObjectBuilder::new(
        serial(stamp.serial)?,
        Validity::new(time(stamp.now), time(stamp.until)),
        address(issuer, &issuer.list_name())?,
        issuer.certificate.clone(),
        address(issuer, file)?,
    );
    builder.set_signing_time(time(stamp.now));
    Ok(builder)
}

/// A ROA or an ASPA: the file.
pub(crate) fn object(
    hands: &dyn Hands,
    issuer: &Authority,
    attestation: &Attestation,
    key: Key<'_>,
    stamp: Stamp,
) -> Result<Vec<u8>, MakeError> {
    let mut builder = builder(issuer, &attestation.file_name(), stamp)?;
    let resources = attestation.resources();
    let kind = match attestation {
        Attestation::Roa { .. } => {
            builder.set_v4_resources(resources.to_ip_resources_v4());
            builder.set_v6_resources(resources.to_ip_resources_v6());
            oid::ROUTE_ORIGIN_AUTHZ
        }
        Attestation::Aspa { .. } => {
            builder.set_as_resources(resources.to_as_resources());
            oid::CT_ASPA
        }
    };
    let signer = Pair::new(hands, key_of(issuer), Some(key));
    let object = builder.finalize(Oid(kind.0.into()), Bytes::from(attestation.encode()), &signer, &());
    let object = object.map_err(|error| unmade(error, &signer))?;
    Ok(object.encode_ref().to_captured(Mode::Der).as_slice().to_vec())
}

/// A list of revoked certificates: the file.
pub(crate) fn list(
    hands: &dyn Hands,
    issuer: &Authority,
    number: u64,
    (from, until): (i64, i64),
    revoked: &BTreeSet<SerialNumber>,
) -> Result<Vec<u8>, MakeError> {
    let entries = revoked.iter().map(|number| Ok(CrlEntry::new(serial(*number)?, time(from))));
    let entries: Vec<_> = entries.collect::<Result<_, MakeError>>()?;
    let list = TbsCertList::new(
        Default::default(),
        issuer.public.to_subject_name(),
        time(from),
        time(until),
        entries,
        issuer.public.key_identifier(),
        number.into(),
    );
    let signer = Pair::new(hands, key_of(issuer), None);
    Ok(list.into_crl(&signer, &())?.to_captured().as_slice().to_vec())
}

/// The content of a manifest, which agents have to find before they are asked.
pub(crate) fn manifest_content(
    number: u64,
    (from, until): (i64, i64),
    files: &BTreeMap<String, Vec<u8>>,
) -> ManifestContent {
    let entries: Vec<_> = files.iter().map(|(file, digest)| FileAndHash::new(file.clone(), digest.clone())).collect();
    ManifestContent::new(number.into(), time(from), time(until), DigestAlgorithm::sha256(), entries.iter())
}

/// The bytes of a manifest's content.
pub(crate) fn manifest_bytes(content: &ManifestContent) -> Vec<u8> {
    content.encode_ref().to_captured(Mode::Der).as_slice().to_vec()
}

/// A manifest: the file.
pub(crate) fn manifest(
    hands: &dyn Hands,
    issuer: &Authority,
    content: ManifestContent,
    key: Key<'_>,
    stamp: Stamp,
) -> Result<Vec<u8>, MakeError> {
    let builder = builder(issuer, &issuer.manifest_name(), stamp)?;
    let signer = Pair::new(hands, key_of(issuer), Some(key));
    let manifest = content.into_manifest(builder, &signer, &()).map_err(|error| unmade(error, &signer))?;
    Ok(manifest.to_captured().as_slice().to_vec())
}
