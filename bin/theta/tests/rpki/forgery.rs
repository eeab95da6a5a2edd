//! What a registry that was taken over asks the nodes to sign: objects as an issuer makes them, of what no member has stated.

use std::{cell::RefCell, fs, io, str::FromStr as _};

use bytes::Bytes;
use rpki::{
    crypto::{
        DigestAlgorithm, PublicKey, PublicKeyFormat, Signature, SignatureAlgorithm, Signer, SigningError,
        signer::KeyError,
    },
    dep::bcder::{Mode, Oid, encode::Values as _},
    repository::{
        crl::{CrlEntry, TbsCertList},
        manifest::{FileAndHash, ManifestContent},
        resources::IpResources,
        sigobj::{SignedObject, SignedObjectBuilder},
        x509::{Time, Validity},
    },
    uri,
};
use sha2::{Digest as _, Sha256};
use theta_rpki::{
    attestation::Attestation,
    registry::{Authority, Pool, Registry},
};

use crate::registries::Registries;

const DAY: i64 = 86_400;

/// What was refused.
#[derive(Debug)]
pub(crate) struct Refused {
    /// With which key it was to be signed.
    pub(crate) key: String,
    /// SHA-256 of it, in hexadecimal digits.
    pub(crate) digest: String,
    /// What was said to whoever asked.
    pub(crate) words: String,
}

/// Whoever has the registry's data and its client, and has the nodes sign what he makes.
pub(crate) struct Forger<'a> {
    registries: &'a Registries,
    registry: Registry,
    /// The key of what is forged, and its public part.
    object: (&'static str, PublicKey),
    now: i64,
    refused: RefCell<Option<Refused>>,
}

fn time(seconds: i64) -> Time {
    Time::from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(seconds).unwrap()))
}

fn rsync(address: &str) -> uri::Rsync {
    uri::Rsync::from_str(address).unwrap()
}

impl<'a> Forger<'a> {
    /// With this key of the pool.
    pub(crate) fn new(registries: &'a Registries, key: &'static str) -> Self {
        let read = |name: &str| fs::read_to_string(registries.path().join(name)).unwrap();
        let registry = Registry::parse(&read("registry.toml")).unwrap();
        let object = (key, Pool::parse(&read("pool.keys")).unwrap().key(key).unwrap().clone());
        Self { registries, registry, object, now: Time::now().timestamp(), refused: RefCell::default() }
    }

    fn acme(&self) -> &Authority {
        self.registry.authority("acme").unwrap()
    }

    fn signature<A: SignatureAlgorithm>(&self, key: &str, algorithm: A, bytes: &[u8]) -> io::Result<Signature<A>> {
        let signed = self.registries.sign(key, bytes).map_err(|words| {
            let digest = hex::encode(Sha256::digest(bytes));
            *self.refused.borrow_mut() = Some(Refused { key: key.to_owned(), digest, words });
            io::Error::other("refused")
        });
        Ok(Signature::new(algorithm, signed?.into()))
    }

    fn answer<T, E>(&self, made: Result<T, E>) -> Result<T, Refused> {
        made.map_err(|_| self.refused.take().expect("nothing was refused, and nothing signed"))
    }

    fn builder(&self, file: &str, seconds: i64) -> SignedObjectBuilder {
        let issuer = self.acme();
        let mut builder = SignedObjectBuilder::new(
            u64::try_from(self.now).unwrap().into(),
            Validity::new(time(self.now), time(self.now + seconds)),
            rsync(&issuer.address(&issuer.list_name())),
            issuer.certificate.clone(),
            rsync(&issuer.address(file)),
        );
        builder.set_signing_time(time(self.now));
        builder
    }

    /// Puts something where agents find it.
    fn put(&self, bytes: &[u8]) -> [u8; 32] {
        let digest = Sha256::digest(bytes);
        fs::write(self.registries.path().join("store/sha256").join(hex::encode(digest)), bytes).unwrap();
        digest.into()
    }

    /// A ROA or an ASPA: its own key signs first, then the authority its certificate. The same again is the same bytes.
    pub(crate) fn object(&self, attestation: &Attestation) -> Result<SignedObject, Refused> {
        let resources = attestation.resources();
        self.object_with(attestation, resources.to_ip_resources_v4())
    }

    /// The same with a certificate for these prefixes.
    pub(crate) fn object_with(&self, attestation: &Attestation, v4: IpResources) -> Result<SignedObject, Refused> {
        let (mut builder, resources) = (self.builder(&attestation.file_name(), 30 * DAY), attestation.resources());
        let kind = match attestation {
            Attestation::Roa { .. } => {
                builder.set_v4_resources(v4);
                builder.set_v6_resources(resources.to_ip_resources_v6());
                rpki::oid::ROUTE_ORIGIN_AUTHZ
            }
            Attestation::Aspa { .. } => {
                builder.set_as_resources(resources.to_as_resources());
                rpki::oid::CT_ASPA
            }
        };
        let content = attestation.encode();
        self.put(&content);
        self.answer(builder.finalize(Oid(kind.0.into()), Bytes::from(content), self, &()))
    }

    /// A list of revoked certificates that has these. By itself it takes nothing away: relying parties have it by a manifest.
    pub(crate) fn list(&self, revoked: &[rpki::repository::x509::Serial]) -> Result<Vec<u8>, Refused> {
        let public = &self.acme().public;
        let entries: Vec<_> = revoked.iter().map(|serial| CrlEntry::new(*serial, time(self.now))).collect();
        let list = TbsCertList::new(
            Default::default(),
            public.to_subject_name(),
            time(self.now),
            time(self.now + DAY),
            entries,
            public.key_identifier(),
            self.number().into(),
        );
        let list = self.answer(list.into_crl(self, &()))?;
        Ok(list.to_captured().as_slice().to_vec())
    }

    /// A manifest with these files.
    pub(crate) fn manifest(&self, files: &[(String, Vec<u8>)]) -> Result<(), Refused> {
        let listed = files.iter().map(|(name, bytes)| FileAndHash::new(name.clone(), self.put(bytes)));
        let listed: Vec<_> = listed.collect();
        let (from, until) = (time(self.now), time(self.now + DAY));
        let number = self.number().into();
        let content = ManifestContent::new(number, from, until, DigestAlgorithm::sha256(), listed.iter());
        self.put(content.encode_ref().to_captured(Mode::Der).as_slice());
        let builder = self.builder(&self.acme().manifest_name(), DAY);
        self.answer(content.into_manifest(builder, self, &())).map(drop)
    }

    /// A number that is above all that were used, as far as agents let one go ahead.
    fn number(&self) -> u64 {
        u64::try_from(self.now + 60).unwrap() << 20
    }
}

impl Signer for Forger<'_> {
    /// There is one: that of the member's authority.
    type KeyId = ();
    type Error = io::Error;

    fn create_key(&self, _: PublicKeyFormat) -> io::Result<()> {
        Err(io::Error::other("the nodes' keys are all there are"))
    }

    fn get_key_info(&self, (): &()) -> Result<PublicKey, KeyError<io::Error>> {
        Ok(self.acme().public.clone())
    }

    fn destroy_key(&self, (): &()) -> Result<(), KeyError<io::Error>> {
        Err(KeyError::KeyNotFound)
    }

    fn sign<A: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        (): &(),
        algorithm: A,
        data: &D,
    ) -> Result<Signature<A>, SigningError<io::Error>> {
        Ok(self.signature(&self.acme().key, algorithm, data.as_ref())?)
    }

    fn sign_one_off<A: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        algorithm: A,
        data: &D,
    ) -> io::Result<(Signature<A>, PublicKey)> {
        let (name, public) = &self.object;
        Ok((self.signature(name, algorithm, data.as_ref())?, public.clone()))
    }

    fn rand(&self, target: &mut [u8]) -> io::Result<()> {
        target.fill(7);
        Ok(())
    }
}
