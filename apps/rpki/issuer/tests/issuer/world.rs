//! An RPKI of a trust anchor and one member. A registry consents, and signers in memory sign what it has consented to.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock},
    time::{Duration, UNIX_EPOCH},
};

use base64ct::{Base64, Encoding as _};
use rpki::{
    crypto::{
        PublicKeyFormat, RpkiSignatureAlgorithm, Signer as _,
        softsigner::{KeyId, SoftSigner},
    },
    repository::{Cert, Crl, Manifest, Roa, sigobj::SignedObject, tal::TalInfo, x509::Time},
};
use sha2::Digest as _;
use tempfile::TempDir;
use theta_rpki::{
    attestation::Attestation,
    consent::{Facts, Refusal, consent},
    kept,
    memory::{Digest, Entry, Memory},
    registry::{Pool, Registry},
    statements::{Authorised, Stated, Statement},
    store::Folder,
};
use theta_rpki_issuer::{
    Learnt,
    hands::{Hands, Unsigned, Wanted},
    issue::{IssueError, Issuer, Report, check_clock},
    output::Output,
    state::StateFile,
};
use theta_rpki_publication::{check, objects::Objects};

pub(crate) const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 24 * HOUR;

/// As many as the largest test takes: an object takes one, and a manifest.
const KEYS_OF_OBJECTS: usize = 66;

/// Keys in memory, made once for all tests: of the anchor, of the member's authority, and of objects.
struct Keys {
    signer: SoftSigner,
    named: Vec<(String, KeyId)>,
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let signer = SoftSigner::new();
        let names = ["rpki-ta", "rpki-acme"].map(str::to_owned).into_iter();
        let names = names.chain((0..KEYS_OF_OBJECTS).map(|number| format!("rpki-ee-{number}")));
        let named = names.map(|name| (name, signer.create_key(PublicKeyFormat::Rsa).unwrap())).collect();
        Keys { signer, named }
    })
}

impl Keys {
    fn id(&self, name: &str) -> KeyId {
        self.named.iter().find(|(named, _)| named == name).unwrap().1
    }

    fn base64(&self, name: &str) -> String {
        Base64::encode_string(&self.signer.get_key_info(&self.id(name)).unwrap().to_info_bytes())
    }
}

fn registry_text() -> String {
    let key = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29";
    format!(
        "name = \"example\"\n\n[[member]]\nhandle = \"acme\"\nasns = [\"AS64496\"]\nv4 = [\"192.0.2.0/24\"]\nv6 = [\"2001:db8::/32\"]\nkeys = [\"{key}\"]\n\n\
         [[authority]]\nname = \"ta\"\nkey = \"rpki-ta\"\npublic = \"{}\"\n\
         certificate = \"rsync://rpki.example/ta/ta.cer\"\nrepository = \"rsync://rpki.example/repo/ta/\"\n\n\
         [[authority]]\nname = \"acme\"\nkey = \"rpki-acme\"\npublic = \"{}\"\nparent = \"ta\"\nmember = \"acme\"\n\
         certificate = \"rsync://rpki.example/repo/ta/acme.cer\"\nrepository = \"rsync://rpki.example/repo/acme/\"\n",
        keys().base64("rpki-ta"),
        keys().base64("rpki-acme"),
    )
}

fn time(seconds: i64) -> Time {
    Time::from(UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap()))
}

pub(crate) fn roa(asn: u32, prefixes: &[&str]) -> Attestation {
    Attestation::roa(asn, prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect()).unwrap()
}

/// A registry with an issuer, and the time.
pub(crate) struct World {
    registry: Registry,
    statements: Vec<Statement>,
    /// What the issuer has instead, if its registry is ahead of the others.
    pub(crate) issuers: Option<Vec<Statement>>,
    pub(crate) issuers_registry: Option<Registry>,
    /// How far the issuer's clock is ahead, in seconds.
    pub(crate) ahead: i64,
    pub(crate) after_break: bool,
    pub(crate) retry: bool,
    /// The registry says of every key that it is for something else.
    pub(crate) lies: bool,
    /// What the registry has agreed to, as its agent's file has it.
    pub(crate) lines: Mutex<Vec<String>>,
    pool: Pool,
    folder: TempDir,
    memory: Mutex<Memory>,
    pub(crate) now: i64,
    /// A key that signs nothing.
    pub(crate) broken: Option<&'static str>,
    /// After so many signatures nothing more is signed.
    pub(crate) left: Mutex<usize>,
    /// How many were wanted in each call.
    pub(crate) calls: Mutex<Vec<usize>>,
    /// How many objects are signed in one call.
    pub(crate) most: usize,
}

impl Hands for World {
    fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsigned> {
        let mut memory = self.memory.lock().unwrap();
        if self.broken == Some(key) {
            return Err(Unsigned("too few nodes answer".to_owned()));
        }
        if self.lies {
            return Err(Unsigned(Refusal::SecondContent.to_string()));
        }
        let authorised = Authorised::at(&self.statements, self.now);
        let facts = Facts {
            registry: &self.registry,
            authorised: &authorised,
            pool: &self.pool,
            store: &Folder::new(self.store()),
            memory: &memory,
            now: self.now,
        };
        let consent = consent(key, bytes, &facts).map_err(|refusal| Unsigned(refusal.to_string()))?;
        for entry in consent.entries {
            if !memory.knows(&entry) {
                self.lines.lock().unwrap().push(entry.to_string());
            }
            memory.learn(entry);
        }
        // It is after the consent that something fails: what was agreed to is known to the registry, and the issuer has no signature.
        let mut left = self.left.lock().unwrap();
        *left = left.checked_sub(1).ok_or_else(|| Unsigned("the issuer crashed".to_owned()))?;
        let keys = keys();
        let signature = keys.signer.sign(&keys.id(key), RpkiSignatureAlgorithm::default(), bytes).unwrap();
        Ok(signature.value().to_vec())
    }

    fn sign_all(&self, wanted: &[Wanted]) -> Vec<Result<Vec<u8>, Unsigned>> {
        self.calls.lock().unwrap().push(wanted.len());
        wanted.iter().map(|Wanted { key, bytes }| self.sign(key, bytes)).collect()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_pool(8)
    }

    pub(crate) fn with_pool(keys_of_objects: usize) -> Self {
        let pool: String = (0..keys_of_objects)
            .map(|number| format!("rpki-ee-{number} {}\n", keys().base64(&format!("rpki-ee-{number}"))))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        StateFile::open(&folder.path().join("state"), true).unwrap().save().unwrap();
        Self {
            registry: Registry::parse(&registry_text()).unwrap(),
            statements: Vec::new(),
            issuers: None,
            issuers_registry: None,
            ahead: 0,
            after_break: true,
            retry: false,
            lies: false,
            lines: Mutex::default(),
            pool: Pool::parse(&pool).unwrap(),
            folder,
            memory: Mutex::default(),
            now: Time::now().timestamp(),
            broken: None,
            left: Mutex::new(usize::MAX),
            calls: Mutex::default(),
            most: 3,
        }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The member states something, for a year.
    pub(crate) fn state_that(&mut self, attestation: &Attestation, grant: bool) {
        let number = u64::try_from(self.statements.len()).unwrap();
        let (from, until) = (self.now - 10, grant.then_some(self.now + 365 * DAY));
        let (rpki, member, attestation) = ("example".to_owned(), "acme".to_owned(), attestation.clone());
        self.statements.push(Statement { rpki, member, number, from, until, attestation });
    }

    /// A run of a program that is started for it.
    pub(crate) fn run(&self) -> Report {
        self.try_run().unwrap()
    }

    pub(crate) fn try_run(&self) -> Result<Report, IssueError> {
        let now = self.now + self.ahead;
        let mut state = StateFile::open(&self.state(), false).unwrap();
        check_clock(&state.state, now, self.after_break)?;
        let stated: Stated = self.issuers.as_ref().unwrap_or(&self.statements).iter().cloned().collect();
        let authorised = state.authorised(&stated, now).unwrap();
        let issuer = Issuer {
            registry: self.issuers_registry.as_ref().unwrap_or(&self.registry),
            authorised: &authorised,
            pool: &self.pool,
            hands: self,
            output: &Output::new(&self.store()),
            most: self.most,
            now,
            after_break: self.after_break,
            retry: self.retry,
        };
        issuer.run(&mut state)
    }

    /// The state is lost, and a new one begun.
    pub(crate) fn lose_state(&self) {
        std::fs::remove_file(self.state()).unwrap();
        StateFile::open(&self.state(), true).unwrap().save().unwrap();
    }

    /// The issuer takes what the registry's agent remembers.
    pub(crate) fn learn(&self) -> Learnt {
        let path = self.path().join("agreed");
        std::fs::write(&path, format!("memory v3\n{}\n", self.lines.lock().unwrap().join("\n"))).unwrap();
        let mut state = StateFile::open(&self.state(), false).unwrap();
        let learnt = state.state.learn(&kept::look(&path).unwrap(), &self.registry, &self.pool, self.now);
        state.save().unwrap();
        learnt
    }

    /// Somebody else has bound a key of the pool to a content.
    pub(crate) fn bind(&self, key: usize, digest: Digest) {
        let key = self.pool.key(&format!("rpki-ee-{key}")).unwrap().key_identifier().into();
        self.memory.lock().unwrap().learn(Entry::Content { key, digest, authority: "acme".to_owned(), from: self.now });
    }

    /// The registry's data with so many objects for the member.
    pub(crate) fn with_objects(most: usize) -> Registry {
        Registry::parse(&registry_text().replace("handle = \"acme\"", &format!("handle = \"acme\"\nobjects = {most}")))
            .unwrap()
    }

    /// The registry's data with one prefix more for the member.
    pub(crate) fn grown() -> Registry {
        Registry::parse(&registry_text().replace("\"192.0.2.0/24\"", "\"192.0.2.0/24\", \"198.51.100.0/24\"")).unwrap()
    }

    pub(crate) fn set_registry(&mut self, registry: Registry) {
        self.registry = registry;
    }

    /// All registries have heard of what the issuer has.
    pub(crate) fn all_know(&mut self) {
        self.statements = self.issuers.take().unwrap();
    }

    /// The registry has not heard of the last statement.
    pub(crate) fn forget_last(&mut self) {
        self.statements.pop();
    }

    pub(crate) fn statements(&self) -> Vec<Statement> {
        self.statements.clone()
    }

    /// A run that does all there is to do.
    #[track_caller]
    pub(crate) fn run_well(&self) -> Report {
        let report = self.run();
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        report
    }

    fn published(&self, address: &str) -> Vec<u8> {
        let path = self.store().join("rsync").join(address.strip_prefix("rsync://").unwrap());
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What a router would be told, from the anchor down: the library believes nothing that is not signed; and the publisher finds nothing wrong.
    #[track_caller]
    pub(crate) fn validated(&self) -> BTreeSet<String> {
        let now = UNIX_EPOCH + Duration::from_secs(self.now.try_into().unwrap());
        let all = Objects::read(&self.store().join("rsync")).unwrap();
        let checked = check::check(&all, None, &[], now).unwrap();
        assert!(checked.warnings.is_empty(), "{:?}", checked.warnings);
        assert_eq!(checked.points.len(), 2);

        let at = time(self.now);
        let anchor = Cert::decode(self.published("rsync://rpki.example/ta/ta.cer").as_slice()).unwrap();
        let anchor = anchor.validate_ta_at(TalInfo::from_name("ta".to_owned()).into_arc(), true, at).unwrap();
        let acme = Cert::decode(self.published("rsync://rpki.example/repo/ta/acme.cer").as_slice()).unwrap();
        let acme = acme.validate_ca_at(&anchor, true, at).unwrap();
        let manifest = Manifest::decode(self.published("rsync://rpki.example/repo/acme/acme.mft").as_slice(), true);
        let (_, content) = manifest.unwrap().validate_at(&acme, true, at).unwrap();
        assert!(content.next_update() > at);
        let mut payloads = BTreeSet::new();
        for entry in content.iter() {
            let name = String::from_utf8(entry.file().to_vec()).unwrap();
            let bytes = self.published(&format!("rsync://rpki.example/repo/acme/{name}"));
            entry_hash(&content, &name, &bytes);
            if name.ends_with(".crl") {
                continue;
            }
            let object = SignedObject::decode(bytes.as_slice(), true).unwrap();
            object.validate_at(&acme, true, at).unwrap();
            payloads.insert(match Roa::decode(bytes.as_slice(), true) {
                Ok(roa) => roa.content().as_id().to_string(),
                Err(_) => "ASPA".to_owned(),
            });
        }
        payloads
    }

    /// How many certificates the member's list revokes.
    pub(crate) fn revoked(&self) -> usize {
        let list = Crl::decode(self.published("rsync://rpki.example/repo/acme/acme.crl").as_slice()).unwrap();
        list.revoked_certs().iter().count()
    }

    /// The keys of the pool that the issuer has taken for something.
    pub(crate) fn taken(&self) -> usize {
        StateFile::open(&self.state(), false).unwrap().state.keys.len()
    }

    /// The published file of an object is not found by its digest any more.
    pub(crate) fn lose(&self, file: &str) {
        let bytes = self.published(&format!("rsync://rpki.example/repo/acme/{file}"));
        std::fs::remove_file(self.store().join("sha256").join(hex::encode(sha2::Sha256::digest(bytes)))).unwrap();
    }

    /// How many files are found by their digests.
    pub(crate) fn contents(&self) -> usize {
        std::fs::read_dir(self.store().join("sha256")).unwrap().count()
    }

    /// How many certificates of the anchor the issuer has asked for that no list revokes.
    pub(crate) fn tries(&self) -> usize {
        let state = StateFile::open(&self.state(), false).unwrap();
        let issued = state.state.authorities.get("ta");
        let standing = issued.into_iter().flat_map(|issued| &issued.certificates);
        standing.filter(|certified| certified.file == "ta.cer" && !certified.is_revoked).count()
    }

    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.folder(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Where something is published below `rsync://rpki.example/`.
    pub(crate) fn folder(&self, folder: &str) -> PathBuf {
        self.store().join("rsync/rpki.example").join(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

#[track_caller]
fn entry_hash(content: &rpki::repository::manifest::ManifestContent, name: &str, bytes: &[u8]) {
    let entry = content.iter().find(|entry| entry.file().as_ref() == name.as_bytes()).unwrap();
    let digest: Vec<u8> = entry.hash().to_vec();
    assert_eq!(digest, sha2::Sha256::digest(bytes).to_vec(), "{name}");
}
