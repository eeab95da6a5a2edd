//! An authority with keys of its own, and its objects in a folder.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use rpki::{
    crypto::{DigestAlgorithm, PublicKey, PublicKeyFormat, RpkiSignatureAlgorithm, Signer, softsigner::SoftSigner},
    repository::{
        cert::{KeyUsage, Overclaim, TbsCert},
        crl::{CrlEntry, TbsCertList},
        manifest::{FileAndHash, ManifestContent},
        resources::{Asn, Prefix},
        sigobj::SignedObjectBuilder,
        x509::{Time, Validity},
    },
    uri::Rsync,
};

const FOLDER: &str = "rsync://rpki.example.net/repo/ca/";

pub(crate) struct Authority {
    signer: SoftSigner,
    key: <SoftSigner as Signer>::KeyId,
    public: PublicKey,
}

/// Files by name.
pub(crate) type Files = BTreeMap<String, Bytes>;

/// A time `seconds` from now: the certificates that the crate makes begin at the real time.
pub(crate) fn from_now(seconds: i64) -> SystemTime {
    let now = SystemTime::now();
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { now - by } else { now + by }
}

fn uri(file: &str) -> Rsync {
    Rsync::from_string(format!("{FOLDER}{file}")).unwrap()
}

impl Authority {
    pub(crate) fn new() -> Self {
        let signer = SoftSigner::new();
        let key = signer.create_key(PublicKeyFormat::Rsa).unwrap();
        let public = signer.get_key_info(&key).unwrap();
        Self { signer, key, public }
    }

    /// A certificate of a child, or of the authority itself.
    pub(crate) fn certificate(&self, is_root: bool) -> Bytes {
        let subject = if is_root {
            self.public.clone()
        } else {
            let key = self.signer.create_key(PublicKeyFormat::Rsa).unwrap();
            self.signer.get_key_info(&key).unwrap()
        };
        let validity = Validity::from_secs(86_400);
        let issuer = self.public.to_subject_name();
        let mut certificate =
            TbsCert::new(12_u64.into(), issuer, validity, None, subject, KeyUsage::Ca, Overclaim::Refuse);
        certificate.set_basic_ca(Some(true));
        certificate.set_ca_repository(Some(uri("child/")));
        certificate.set_rpki_manifest(Some(uri("child/child.mft")));
        certificate.build_v4_resource_blocks(|blocks| blocks.push(Prefix::new(0, 0)));
        certificate.build_v6_resource_blocks(|blocks| blocks.push(Prefix::new(0, 0)));
        certificate.build_as_resource_blocks(|blocks| blocks.push((Asn::MIN, Asn::MAX)));
        if !is_root {
            certificate.set_authority_key_identifier(Some(self.public.key_identifier()));
            certificate.set_crl_uri(Some(uri("ca.crl")));
            certificate.set_ca_issuer(Some(uri("ca.cer")));
        }
        certificate.into_cert(&self.signer, &self.key).unwrap().to_captured().into_bytes()
    }

    pub(crate) fn crl(&self, number: u64, until: SystemTime) -> Bytes {
        let list = TbsCertList::new(
            RpkiSignatureAlgorithm::default(),
            self.public.to_subject_name(),
            Time::from(from_now(-60)),
            Time::from(until),
            Vec::<CrlEntry>::new(),
            self.public.key_identifier(),
            number.into(),
        );
        list.into_crl(&self.signer, &self.key).unwrap().to_captured().into_bytes()
    }

    /// A manifest of these files.
    pub(crate) fn manifest(&self, number: u64, until: SystemTime, files: &Files) -> Bytes {
        let hash = |bytes: &Bytes| DigestAlgorithm::default().digest(bytes).as_ref().to_vec();
        let list: Vec<_> = files.iter().map(|(name, bytes)| FileAndHash::new(name.as_bytes(), hash(bytes))).collect();
        let (from, until) = (Time::from(from_now(-60)), Time::from(until));
        let content = ManifestContent::new(number.into(), from, until, DigestAlgorithm::default(), list.iter());
        let validity = Validity::from_secs(86_400);
        let signed = SignedObjectBuilder::new(number.into(), validity, uri("ca.crl"), uri("ca.cer"), uri("ca.mft"));
        content.into_manifest(signed, &self.signer, &self.key).unwrap().to_captured().into_bytes()
    }

    /// All files of the authority, with numbers and times of manifest and CRL.
    pub(crate) fn files(&self, number: u64, until: SystemTime, others: &Files) -> Files {
        let mut files = others.clone();
        files.insert("ca.crl".to_owned(), self.crl(number, until));
        let manifest = self.manifest(number, until, &files);
        files.insert("ca.mft".to_owned(), manifest);
        files
    }
}

/// Leaves the files in a folder, as an issuer does, in the place of those that were there.
pub(crate) fn leave(files: &Files, folder: &Path) {
    let place = folder.join("rpki.example.net/repo/ca");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    for (name, bytes) in files {
        fs::write(place.join(name), bytes).unwrap();
    }
}
