//! An RPKI of a trust anchor and one member, with an issuer that signs whatever it is told to.

use std::{cell::RefCell, collections::BTreeMap, str::FromStr as _, sync::OnceLock};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64ct::{Base64, Encoding as _};
use bytes::Bytes;
use rpki::{
    crypto::{
        DigestAlgorithm, KeyIdentifier, PublicKey, PublicKeyFormat, RpkiSignatureAlgorithm, Signature,
        SignatureAlgorithm, Signer, SigningError,
        signer::KeyError,
        softsigner::{KeyId, SoftSigner},
    },
    dep::bcder::{Mode, Oid, encode::Values as _},
    repository::{
        Cert,
        cert::{KeyUsage, Overclaim, TbsCert},
        crl::{CrlEntry, TbsCertList},
        manifest::{FileAndHash, ManifestContent},
        resources::{AddressFamily, IpResources},
        sigobj::{SignedObject, SignedObjectBuilder},
        x509::{Serial, Time, Validity},
    },
    uri,
};
use sha2::{Digest as _, Sha256};
use theta_rpki::{
    attestation::Attestation,
    consent::{Consent, Facts, Refusal, consent},
    memory::{Digest, Memory},
    registry::{Authority, Pool, Registry},
    signatures::Signed,
    statements::{Authorised, Statement},
    store::Store,
};

/// How long objects are valid, in seconds.
pub(crate) const DAY: i64 = 86_400;

/// Keys in memory, made once for all tests: of the anchor, of the member's authority, of objects, and one that belongs to nobody.
pub(crate) struct Keys {
    signer: SoftSigner,
    pub(crate) anchor: KeyId,
    pub(crate) acme: KeyId,
    pub(crate) objects: [KeyId; 4],
    pub(crate) foreign: KeyId,
}

pub(crate) fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let signer = SoftSigner::new();
        let key = || signer.create_key(PublicKeyFormat::Rsa).unwrap();
        let (anchor, acme, foreign) = (key(), key(), key());
        let objects = [(); 4].map(|()| key());
        Keys { anchor, acme, objects, foreign, signer }
    })
}

impl Keys {
    pub(crate) fn public(&self, key: KeyId) -> PublicKey {
        self.signer.get_key_info(&key).unwrap()
    }

    /// A signature under some bytes, whoever has agreed.
    pub(crate) fn sign(&self, key: KeyId, bytes: &[u8]) -> Vec<u8> {
        self.signer.sign(&key, RpkiSignatureAlgorithm::default(), bytes).unwrap().value().to_vec()
    }
}

/// The library's signer with a chosen key for one object; it keeps what it was given to sign.
pub(crate) struct Recorder {
    pub(crate) object: KeyId,
    pub(crate) asked: RefCell<Vec<Vec<u8>>>,
}

impl Recorder {
    pub(crate) fn new(object: KeyId) -> Self {
        Self { object, asked: RefCell::default() }
    }
}

impl Signer for Recorder {
    type KeyId = KeyId;
    type Error = std::io::Error;

    fn create_key(&self, algorithm: PublicKeyFormat) -> Result<KeyId, Self::Error> {
        keys().signer.create_key(algorithm)
    }

    fn get_key_info(&self, key: &KeyId) -> Result<PublicKey, KeyError<Self::Error>> {
        keys().signer.get_key_info(key)
    }

    fn destroy_key(&self, key: &KeyId) -> Result<(), KeyError<Self::Error>> {
        keys().signer.destroy_key(key)
    }

    fn sign<Alg: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        key: &KeyId,
        algorithm: Alg,
        data: &D,
    ) -> Result<Signature<Alg>, SigningError<Self::Error>> {
        self.asked.borrow_mut().push(data.as_ref().to_vec());
        keys().signer.sign(key, algorithm, data)
    }

    fn sign_one_off<Alg: SignatureAlgorithm, D: AsRef<[u8]> + ?Sized>(
        &self,
        algorithm: Alg,
        data: &D,
    ) -> Result<(Signature<Alg>, PublicKey), Self::Error> {
        self.asked.borrow_mut().push(data.as_ref().to_vec());
        let signature =
            keys().signer.sign(&self.object, algorithm, data).map_err(|_| std::io::Error::other("no key"))?;
        Ok((signature, keys().public(self.object)))
    }

    fn rand(&self, target: &mut [u8]) -> Result<(), Self::Error> {
        keys().signer.rand(target)
    }
}

/// Contents and objects by their digests, and what is published.
#[derive(Default)]
pub(crate) struct Shelf {
    contents: BTreeMap<Digest, Vec<u8>>,
    published: BTreeMap<String, Vec<u8>>,
}

impl Shelf {
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Digest {
        let digest = Sha256::digest(bytes).into();
        self.contents.insert(digest, bytes.to_vec());
        digest
    }
}

impl Store for Shelf {
    fn content(&self, digest: &Digest) -> Result<Vec<u8>, String> {
        self.contents.get(digest).cloned().ok_or_else(|| format!("there is no {}", hex::encode(digest)))
    }

    fn published(&self, address: &str) -> Result<Vec<u8>, String> {
        self.published.get(address).cloned().ok_or_else(|| format!("there is no {address}"))
    }
}

pub(crate) fn base64(key: KeyId) -> String {
    Base64::encode_string(&keys().public(key).to_info_bytes())
}

/// One of the member's keys, two of which sign.
fn member_key(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

pub(crate) fn registry_text() -> String {
    let members: Vec<_> = (1..=3).map(|seed| hex::encode(member_key(seed).public_key().as_ref())).collect();
    let operators: Vec<_> = (11..=13).map(|seed| hex::encode(member_key(seed).public_key().as_ref())).collect();
    format!(
        "name = \"example\"\n\n[[member]]\nhandle = \"acme\"\nasns = [\"AS64496\"]\nv4 = [\"192.0.2.0/24\"]\nv6 = [\"2001:db8::/32\"]\nkeys = {members:?}\nneed = 2\n\n\
         [[authority]]\nname = \"ta\"\nkey = \"rpki-ta\"\npublic = \"{}\"\n\
         certificate = \"rsync://rpki.example/ta/ta.cer\"\nrepository = \"rsync://rpki.example/repo/ta/\"\n\n\
         [[authority]]\nname = \"acme\"\nkey = \"rpki-acme\"\npublic = \"{}\"\nparent = \"ta\"\nmember = \"acme\"\n\
         certificate = \"rsync://rpki.example/repo/ta/acme.cer\"\nrepository = \"rsync://rpki.example/repo/acme/\"\n\
         notify = \"https://rpki.example/notification.xml\"\n\n\
         [operators]\nkeys = {operators:?}\nneed = 2\n",
        base64(keys().anchor),
        base64(keys().acme),
    )
}

pub(crate) fn pool_text() -> String {
    let lines = keys().objects.iter().enumerate().map(|(number, key)| format!("rpki-ee-{number} {}\n", base64(*key)));
    lines.collect()
}

/// The member's signatures under some bytes, as in a file.
pub(crate) fn signatures(bytes: &[u8], seeds: &[u8]) -> Vec<Signed> {
    let sign = |seed: &u8| {
        let pair = member_key(*seed);
        Signed { key: hex::encode(pair.public_key().as_ref()), signature: hex::encode(pair.sign(bytes).as_ref()) }
    };
    seeds.iter().map(sign).collect()
}

pub(crate) fn roa(asn: u32, prefixes: &[&str]) -> Attestation {
    Attestation::roa(asn, prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect()).unwrap()
}

pub(crate) fn aspa(providers: &[u32]) -> Attestation {
    Attestation::aspa(64_496, providers.iter().copied().collect()).unwrap()
}

/// A registry, and what it knows.
pub(crate) struct World {
    pub(crate) registry: Registry,
    pub(crate) statements: Vec<Statement>,
    pub(crate) pool: Pool,
    pub(crate) shelf: Shelf,
    pub(crate) memory: Memory,
    pub(crate) now: i64,
    /// How long after now manifests begin, in seconds.
    pub(crate) ahead: i64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            registry: Registry::parse(&registry_text()).unwrap(),
            statements: Vec::new(),
            pool: Pool::parse(&pool_text()).unwrap(),
            shelf: Shelf::default(),
            memory: Memory::default(),
            now: Time::now().timestamp(),
            ahead: 0,
        }
    }

    /// The member states something, whose signatures the tests of statements look at.
    pub(crate) fn state(&mut self, attestation: &Attestation, grant: bool) {
        let number = u64::try_from(self.statements.len()).unwrap();
        let (from, until) = (self.now - 10, grant.then_some(self.now + 30 * DAY));
        let (rpki, member, attestation) = (self.registry.name.clone(), "acme".to_owned(), attestation.clone());
        self.statements.push(Statement { rpki, member, number, from, until, attestation });
    }

    pub(crate) fn anchor(&self) -> &Authority {
        self.registry.authority("ta").unwrap()
    }

    pub(crate) fn acme(&self) -> &Authority {
        self.registry.authority("acme").unwrap()
    }

    /// What the registry says, which remembers what it has agreed to.
    pub(crate) fn ask(&mut self, key: &str, bytes: &[u8]) -> Result<Consent, Refusal> {
        let authorised = Authorised::at(&self.statements, self.now);
        let facts = Facts {
            registry: &self.registry,
            authorised: &authorised,
            pool: &self.pool,
            store: &self.shelf,
            memory: &self.memory,
            now: self.now,
        };
        let said = consent(key, bytes, &facts)?;
        said.entries.iter().for_each(|entry| self.memory.learn(entry.clone()));
        Ok(said)
    }

    pub(crate) fn refused(&mut self, key: &str, bytes: &[u8], words: &str) {
        let said = self.ask(key, bytes).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }

    pub(crate) fn validity(&self, seconds: i64) -> Validity {
        Validity::new(time(self.now), time(self.now + seconds))
    }

    /// The certificate for an authority, as it follows from the data.
    pub(crate) fn authority_certificate(&self, of: &Authority, serial: u64) -> TbsCert {
        let issuer = of.parent.as_deref().map_or(of, |parent| self.registry.authority(parent).unwrap());
        let mut certificate = TbsCert::new(
            serial.into(),
            issuer.public.to_subject_name(),
            self.validity(1_000 * DAY),
            None,
            of.public.clone(),
            KeyUsage::Ca,
            Overclaim::Refuse,
        );
        certificate.set_basic_ca(Some(true));
        certificate.set_ca_repository(Some(of.repository.clone()));
        certificate.set_rpki_manifest(Some(rsync(&of.address(&of.manifest_name()))));
        certificate.set_rpki_notify(of.notify.clone());
        let resources = self.registry.resources(of);
        certificate.set_as_resources(resources.to_as_resources());
        certificate.set_v4_resources(resources.to_ip_resources_v4());
        certificate.set_v6_resources(resources.to_ip_resources_v6());
        if issuer.name != of.name {
            certificate.set_authority_key_identifier(Some(issuer.public.key_identifier()));
            certificate.set_crl_uri(Some(rsync(&issuer.address(&issuer.list_name()))));
            certificate.set_ca_issuer(Some(issuer.certificate.clone()));
        }
        certificate
    }

    /// Certifies both authorities and publishes the certificates.
    pub(crate) fn certify(&mut self) -> Cert {
        let anchor = self.authority_certificate(self.anchor(), 1);
        self.ask("rpki-ta", &tbs(&anchor)).unwrap();
        let acme = self.authority_certificate(self.acme(), 2);
        self.ask("rpki-ta", &tbs(&acme)).unwrap();
        self.publish("ta", anchor);
        self.publish("acme", acme)
    }

    /// Signs the certificate of an authority, whoever has agreed, and publishes it.
    pub(crate) fn publish(&mut self, of: &str, certificate: TbsCert) -> Cert {
        let certificate = certificate.into_cert(&Recorder::new(keys().foreign), &keys().anchor).unwrap();
        let address = self.registry.authority(of).unwrap().certificate.to_string();
        let bytes = certificate.to_captured().into_bytes();
        self.shelf.put(&bytes);
        self.shelf.published.insert(address, bytes.to_vec());
        certificate
    }

    /// An object as an issuer makes it: the object, and the two things that it has signed: attributes, certificate.
    pub(crate) fn object(&self, attestation: &Attestation, key: KeyId, serial: u64) -> (SignedObject, Vec<Vec<u8>>) {
        self.object_with(attestation, key, serial, |_| {})
    }

    pub(crate) fn object_with(
        &self,
        attestation: &Attestation,
        key: KeyId,
        serial: u64,
        bend: impl FnOnce(&mut SignedObjectBuilder),
    ) -> (SignedObject, Vec<Vec<u8>>) {
        let kind = match attestation {
            Attestation::Roa { .. } => rpki::oid::ROUTE_ORIGIN_AUTHZ,
            Attestation::Aspa { .. } => rpki::oid::CT_ASPA,
        };
        let mut builder = self.builder(self.acme(), &attestation.file_name(), serial);
        let resources = attestation.resources();
        match attestation {
            Attestation::Roa { .. } => {
                builder.set_v4_resources(resources.to_ip_resources_v4());
                builder.set_v6_resources(resources.to_ip_resources_v6());
            }
            Attestation::Aspa { .. } => builder.set_as_resources(resources.to_as_resources()),
        }
        bend(&mut builder);
        let recorder = Recorder::new(key);
        let content = Bytes::from(attestation.encode());
        let object = builder.finalize(Oid(kind.0.into()), content, &recorder, &keys().acme).unwrap();
        (object, recorder.asked.into_inner())
    }

    fn builder(&self, issuer: &Authority, file: &str, serial: u64) -> SignedObjectBuilder {
        let mut builder = SignedObjectBuilder::new(
            serial.into(),
            self.validity(30 * DAY),
            rsync(&issuer.address(&issuer.list_name())),
            issuer.certificate.clone(),
            rsync(&issuer.address(file)),
        );
        builder.set_signing_time(time(self.now));
        builder
    }

    /// Has the object signed by the nodes and puts it on the shelf.
    pub(crate) fn issue(&mut self, attestation: &Attestation, key: usize, serial: u64) -> Digest {
        let (object, asked) = self.object(attestation, keys().objects[key], serial);
        self.ask(&format!("rpki-ee-{key}"), &asked[0]).unwrap();
        self.ask("rpki-acme", &asked[1]).unwrap();
        self.shelf.put(&object.encode_ref().to_captured(Mode::Der).into_bytes())
    }

    /// A list of revoked certificates of the member's authority, for a day: what is to be signed, and the file.
    pub(crate) fn list(&self, number: u64, revoked: &[u64]) -> (Vec<u8>, Vec<u8>) {
        self.list_of("acme", number, revoked, DAY)
    }

    pub(crate) fn list_of(&self, of: &str, number: u64, revoked: &[u64], seconds: i64) -> (Vec<u8>, Vec<u8>) {
        let revoked: Vec<_> = revoked.iter().map(|serial| (*serial, self.now)).collect();
        self.list_with(of, number, &revoked, seconds)
    }

    /// A list whose certificates were revoked at this time.
    pub(crate) fn list_revoked_at(&self, number: u64, revoked: &[u64], at: i64) -> (Vec<u8>, Vec<u8>) {
        let revoked: Vec<_> = revoked.iter().map(|serial| (*serial, at)).collect();
        self.list_with("acme", number, &revoked, DAY)
    }

    fn list_with(&self, of: &str, number: u64, revoked: &[(u64, i64)], seconds: i64) -> (Vec<u8>, Vec<u8>) {
        let public = &self.registry.authority(of).unwrap().public;
        let (from, until) = (time(self.now), time(self.now + seconds));
        let entries = revoked.iter().map(|(serial, at)| CrlEntry::new(Serial::from(*serial), time(*at)));
        let entries: Vec<_> = entries.collect();
        let identifier: KeyIdentifier = public.key_identifier();
        let list = TbsCertList::new(
            Default::default(),
            public.to_subject_name(),
            from,
            until,
            entries,
            identifier,
            number.into(),
        );
        let recorder = Recorder::new(keys().foreign);
        let list = list.into_crl(&recorder, &key_of(of)).unwrap();
        (recorder.asked.into_inner().remove(0), list.to_captured().into_bytes().to_vec())
    }

    /// The attributes and the certificate of a manifest of the member's authority with these files, for a day, whose content is on the shelf.
    pub(crate) fn manifest(
        &mut self,
        number: u64,
        files: &[(String, Digest)],
        key: usize,
        serial: u64,
    ) -> Vec<Vec<u8>> {
        self.manifest_of("acme", number, files, (key, serial), DAY)
    }

    pub(crate) fn manifest_of(
        &mut self,
        of: &str,
        number: u64,
        files: &[(String, Digest)],
        (key, serial): (usize, u64),
        seconds: i64,
    ) -> Vec<Vec<u8>> {
        let entries: Vec<_> = files.iter().map(|(file, digest)| FileAndHash::new(file.clone(), *digest)).collect();
        let from = self.now + self.ahead;
        let (from, until) = (time(from), time(from + seconds));
        let content = ManifestContent::new(number.into(), from, until, DigestAlgorithm::sha256(), entries.iter());
        self.shelf.put(&content.encode_ref().to_captured(Mode::Der).into_bytes());
        let recorder = Recorder::new(keys().objects[key]);
        let issuer = self.registry.authority(of).unwrap();
        let mut builder = self.builder(issuer, &issuer.manifest_name(), serial);
        builder.set_validity(Validity::new(time(self.now), until));
        content.into_manifest(builder, &recorder, &key_of(of)).unwrap();
        recorder.asked.into_inner()
    }
}

fn key_of(authority: &str) -> KeyId {
    if authority == "ta" { keys().anchor } else { keys().acme }
}

pub(crate) fn time(seconds: i64) -> Time {
    let since = std::time::Duration::from_secs(u64::try_from(seconds).unwrap());
    Time::from(std::time::UNIX_EPOCH + since)
}

pub(crate) fn rsync(text: &str) -> uri::Rsync {
    uri::Rsync::from_str(text).unwrap()
}

/// What a signature of a certificate covers.
pub(crate) fn tbs(certificate: &TbsCert) -> Vec<u8> {
    certificate.encode_ref().to_captured(Mode::Der).into_bytes().to_vec()
}

/// A certificate, read from what its signature covers.
pub(crate) fn read(bytes: &[u8]) -> TbsCert {
    Mode::Der.decode(bytes, TbsCert::from_constructed).unwrap()
}

/// An extension of IPv6 addresses that is there and has none. The library writes none, and reads it.
pub(crate) fn no_addresses() -> IpResources {
    Mode::Der.decode(b"\x30\x00".as_slice(), |content| IpResources::take_from(content, AddressFamily::Ipv6)).unwrap()
}
