//! Authorities with keys of their own, and their objects in a folder.

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

const MODULE: &str = "rsync://rpki.example.net/repo/";
/// Where somebody else publishes.
const ELSEWHERE: &str = "rsync://rpki.example.org/repo/";

pub(crate) struct Authority {
    /// The name of its folder, and of its files.
    name: String,
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

/// From when on things with a number are: a second later with each. Times are in whole seconds.
pub(crate) fn begin(number: u64) -> SystemTime {
    from_now(-60) + Duration::from_secs(number)
}

fn uri(path: &str) -> Rsync {
    Rsync::from_string(path.to_owned()).unwrap()
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("ca")
    }

    pub(crate) fn named(name: &str) -> Self {
        let signer = SoftSigner::new();
        let key = signer.create_key(PublicKeyFormat::Rsa).unwrap();
        let public = signer.get_key_info(&key).unwrap();
        Self { name: name.to_owned(), signer, key, public }
    }

    /// Where a file of the authority is.
    pub(crate) fn at(&self, ending: &str) -> Rsync {
        let name = &self.name;
        uri(&format!("{MODULE}{name}/{name}.{ending}"))
    }

    /// A certificate of somebody who publishes elsewhere.
    pub(crate) fn certificate_of_a_stranger(&self) -> Bytes {
        let key = self.signer.create_key(PublicKeyFormat::Rsa).unwrap();
        let public = self.signer.get_key_info(&key).unwrap();
        self.certify(public, &format!("{ELSEWHERE}child/"), "child.mft", false)
    }

    /// A certificate of an authority that publishes in the same repository.
    pub(crate) fn certificate_of(&self, child: &Self) -> Bytes {
        let name = &child.name;
        self.certify(child.public.clone(), &format!("{MODULE}{name}/"), &format!("{name}.mft"), false)
    }

    /// The authority's own certificate, as a trust anchor.
    pub(crate) fn own_certificate(&self) -> Bytes {
        self.own_certificate_for(Validity::from_secs(86_400))
    }

    pub(crate) fn own_certificate_for(&self, validity: Validity) -> Bytes {
        let name = &self.name;
        let (folder, manifest) = (format!("{MODULE}{name}/"), format!("{name}.mft"));
        self.certify_for(validity, self.public.clone(), &folder, &manifest, true)
    }

    fn certify(&self, subject: PublicKey, folder: &str, manifest: &str, is_root: bool) -> Bytes {
        self.certify_for(Validity::from_secs(86_400), subject, folder, manifest, is_root)
    }

    fn certify_for(
        &self,
        validity: Validity,
        subject: PublicKey,
        folder: &str,
        manifest: &str,
        is_root: bool,
    ) -> Bytes {
        let issuer = self.public.to_subject_name();
        let mut certificate =
            TbsCert::new(12_u64.into(), issuer, validity, None, subject, KeyUsage::Ca, Overclaim::Refuse);
        certificate.set_basic_ca(Some(true));
        certificate.set_ca_repository(Some(uri(folder)));
        certificate.set_rpki_manifest(Some(uri(&format!("{folder}{manifest}"))));
        certificate.build_v4_resource_blocks(|blocks| blocks.push(Prefix::new(0, 0)));
        certificate.build_v6_resource_blocks(|blocks| blocks.push(Prefix::new(0, 0)));
        certificate.build_as_resource_blocks(|blocks| blocks.push((Asn::MIN, Asn::MAX)));
        if !is_root {
            certificate.set_authority_key_identifier(Some(self.public.key_identifier()));
            certificate.set_crl_uri(Some(self.at("crl")));
            certificate.set_ca_issuer(Some(self.at("cer")));
        }
        certificate.into_cert(&self.signer, &self.key).unwrap().to_captured().into_bytes()
    }

    pub(crate) fn crl(&self, number: u64, until: SystemTime) -> Bytes {
        let list = TbsCertList::new(
            RpkiSignatureAlgorithm::default(),
            self.public.to_subject_name(),
            Time::from(begin(number)),
            Time::from(until),
            Vec::<CrlEntry>::new(),
            self.public.key_identifier(),
            number.into(),
        );
        list.into_crl(&self.signer, &self.key).unwrap().to_captured().into_bytes()
    }

    /// A manifest of these files.
    pub(crate) fn manifest(&self, number: u64, until: SystemTime, files: &Files) -> Bytes {
        self.manifest_of(number, begin(number), until, files)
    }

    /// A manifest of these files that was issued at some time.
    pub(crate) fn manifest_of(&self, number: u64, from: SystemTime, until: SystemTime, files: &Files) -> Bytes {
        self.manifest_for(Validity::from_secs(86_400), number, (from, until), files)
    }

    /// The same, whose own certificate is valid then.
    pub(crate) fn manifest_for(
        &self,
        validity: Validity,
        number: u64,
        (from, until): (SystemTime, SystemTime),
        files: &Files,
    ) -> Bytes {
        let hash = |bytes: &Bytes| DigestAlgorithm::default().digest(bytes).as_ref().to_vec();
        let list: Vec<_> = files.iter().map(|(name, bytes)| FileAndHash::new(name.as_bytes(), hash(bytes))).collect();
        let (from, until) = (Time::from(from), Time::from(until));
        let content = ManifestContent::new(number.into(), from, until, DigestAlgorithm::default(), list.iter());
        let (crl, issuer, place) = (self.at("crl"), self.at("cer"), self.at("mft"));
        let signed = SignedObjectBuilder::new(number.into(), validity, crl, issuer, place);
        content.into_manifest(signed, &self.signer, &self.key).unwrap().to_captured().into_bytes()
    }

    /// All files of the authority, with numbers and times of manifest and CRL.
    pub(crate) fn files(&self, number: u64, until: SystemTime, others: &Files) -> Files {
        let mut files = others.clone();
        files.insert(format!("{}.crl", self.name), self.crl(number, until));
        let manifest = self.manifest(number, until, &files);
        files.insert(format!("{}.mft", self.name), manifest);
        files
    }
}

/// Leaves the files in the folder of an authority, as an issuer does, in the place of those that were there; without any there is no folder.
pub(crate) fn leave(files: &Files, objects: &Path, name: &str) {
    let place = objects.join("rpki.example.net/repo").join(name);
    let _ = fs::remove_dir_all(&place);
    if !files.is_empty() {
        fs::create_dir_all(&place).unwrap();
    }
    for (name, bytes) in files {
        fs::write(place.join(name), bytes).unwrap();
    }
}
