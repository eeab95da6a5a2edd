//! `theta sign` and `theta verify`.

mod batch;
mod form;

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use bytes::Bytes;
use clap::Args;
use rand_core::Rng;
use serde::Serialize;
use theta_client::{Answer, KeyState, RandomizedSignature, Version};
use theta_schemes::{
    MAX_MESSAGE_LEN, MessageDigest, Purpose, RequestError,
    groups::Secret,
    keys::SchemeError,
    signatures::frost::{MIN_SEED_LEN, check_seed, verify_with_key},
};

use self::form::Form;
use crate::{
    access::ApprovalFiles,
    connect::{ClientArgs, Provenance},
    exit::Failure,
    files::{self, Source, Target},
    keys::{KeyArgs, NamedKey},
    output::{self, Output},
};

/// Options of `theta sign`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta sign contract.pdf                  writes contract.pdf.sig
  theta sign *.pdf                         each into a file of its own; hundreds of files take one call to each node
  theta sign contract.pdf --key beacon           a BLS signature of 48 bytes instead of 96
  theta sign contract.pdf --key sign-ed25519     an Ed25519 signature
  theta sign vote.bin --key chain --slot 48211   one message for a slot, if the policy says so
  theta sign app.tar --key release --approval ann.approval --approval ben.approval
  theta sign contract.pdf --key sign-ed25519 --randomize   under a fresh key that only this client can link to the group's
  theta sign disk.img --key rsa                  of any size with RSA keys: over 32 MiB the nodes see the digest alone
  theta sign --digest sha256:9f86d08... --key rsa -o disk.img.sig
  theta sign contract.pdf --key wallet --format der        an ECDSA signature as OpenSSL has them; without, r and s
  theta sign --digest sha256:9f86d08... --key wallet --format ethereum -o tx.sig     r, s and v for ecrecover (secp256k1)
  echo hello | theta sign - | xxd

The output is the bare signature, as the standard verifiers of its kind take it with the key of theta keys export: IETF BLS \
(bls04), Ed25519 and Ed448 of RFC 8032 and BIP-340 (frost), PKCS#1 v1.5 and PSS (sh00), r and s of 32 bytes each or with --format der in DER (ecdsa). For example:
  openssl pkeyutl -verify -rawin -pubin -inkey key.pem -in contract.pdf -sigfile contract.pdf.sig     Ed25519
  openssl dgst -sha256 -verify key.pem -signature contract.pdf.sig contract.pdf                       RSA, PKCS#1 v1.5; ECDSA in DER

RSA (sh00) and ECDSA hash a message before all else, so a digest can be signed for its message. The nodes decide about that as about an \
operation of its own, sign-digest, since they see nothing of the message. Ed25519, Ed448 and BLS need the whole message at each \
node: to sign a digest there is to sign another message, of 32 bytes, which theta sign does like any other (theta sign FILE-WITH-DIGEST).")]
pub(crate) struct SignArgs {
    /// What to sign; - for standard input
    #[arg(id = "file", required_unless_present = "digest", conflicts_with = "digest", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Sign the message with this digest, of which the nodes see no more: sha256:HEX or sha512:HEX, as the key's suite hashes
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["randomize", "randomizer"])]
    digest: Option<DigestWord>,
    /// Where to write the signature; - for standard output [default: FILE.sig, or standard output for standard input]
    #[arg(short, long, value_name = "SIG")]
    output: Option<PathBuf>,
    /// Name of the key, or NAME@VERSION [default: sign, or the only one for signatures]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// How to write a signature of ECDSA [default: raw]
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
    /// Sign under a key re-randomised with a fresh secret, and print that key (FROST)
    #[arg(long)]
    randomize: bool,
    /// The same with this secret of 32 to 64 random bytes, in hexadecimal
    #[arg(long, value_name = "HEX", conflicts_with = "randomize")]
    randomizer: Option<String>,
    /// The slot that the message is for, where a signing rule of the policy counts slots
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["randomize", "randomizer"])]
    slot: Option<u64>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `theta verify`.
#[derive(Debug, Args)]
// The signature is always there, the file before it only without --digest.
#[command(allow_missing_positional = true)]
#[command(after_help = "\
Examples:
  theta verify contract.pdf contract.pdf.sig
  theta verify --digest sha256:9f86d08... disk.img.sig --key rsa
  theta verify contract.pdf contract.pdf.sig --public-key sign.pub
  theta verify contract.pdf contract.pdf.sig --key sign-ed25519 --randomized-key 3b6a27bc...

Exit code 0 if the signature verifies, 1 if it does not.")]
pub(crate) struct VerifyArgs {
    /// What was signed; - for standard input
    #[arg(required_unless_present = "digest", conflicts_with = "digest")]
    file: Option<PathBuf>,
    /// The signature, as bytes or in hexadecimal; of ECDSA, r and s or DER
    signature: PathBuf,
    /// The digest of what was signed, instead of the file: sha256:HEX or sha512:HEX (RSA, ECDSA)
    #[arg(long, value_name = "DIGEST", conflicts_with = "randomized_key")]
    digest: Option<DigestWord>,
    /// Verify with this key, in hexadecimal, as theta sign --randomize printed it; --key tells the suite
    #[arg(long, value_name = "HEX")]
    randomized_key: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Signed {
    signature: String,
    /// What the nodes saw, if it was no more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    randomized_key: Option<String>,
    /// Of ECDSA: which of the keys that fit the signature it is, 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_id: Option<u8>,
    output: PathBuf,
    #[serde(flatten)]
    provenance: Provenance,
}

#[derive(Serialize)]
struct Verified<'a> {
    valid: bool,
    reason: Option<String>,
    key: &'a str,
    /// The version that signed, if it is known.
    version: Option<u32>,
}

/// What is to be signed or was: a message, or its digest alone.
enum Subject {
    Message(Vec<u8>),
    Digest(MessageDigest, Vec<u8>),
}

impl Subject {
    /// Of a file: the message if it is not longer than `limit` bytes, else its digest, if the key signs digests.
    fn read(source: Source, key: &NamedKey, limit: usize, digest_too: bool) -> Result<Self, Failure> {
        let Some(digest) = key.public.message_digest().filter(|_| digest_too) else {
            let hint = "nodes need the whole message for a key of this suite; RSA and ECDSA keys (sh00-..., ecdsa-...) sign files of any size";
            return source.read_all(limit, hint).map(Self::Message);
        };
        let Source { name, mut reader, .. } = source;
        let failed = |error: &std::io::Error| Failure::reading(&name, error);
        let (mut message, bound) = (Vec::new(), u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1));
        reader.by_ref().take(bound).read_to_end(&mut message).map_err(|error| failed(&error))?;
        if message.len() <= limit {
            return Ok(Self::Message(message));
        }
        let mut hasher = digest.hasher();
        hasher.update(&message);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(Self::Digest(digest, hasher.finish())),
                Ok(read) => hasher.update(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// The digest that is signed, if the key's scheme hashes first.
    fn digest(&self, key: &NamedKey) -> Option<Vec<u8>> {
        match self {
            Self::Message(message) => key.public.message_digest().map(|digest| digest.of(message)),
            Self::Digest(_, digest) => Some(digest.clone()),
        }
    }

    /// A digest that was given.
    fn given(DigestWord(algorithm, digest): &DigestWord, key: &NamedKey) -> Result<Self, Failure> {
        match key.public.message_digest() {
            Some(hashes) if hashes == *algorithm => Ok(Self::Digest(hashes, digest.clone())),
            Some(hashes) => {
                let suite = key.public.suite();
                Err(Failure::Usage(format!(
                    "the key {} ({suite}) hashes by {hashes}: give a digest {hashes}:HEX",
                    key.name
                )))
            }
            None => {
                let (name, suite) = (&key.name, key.public.suite());
                Err(Failure::Usage(format!("the key {name} ({suite}): {}", RequestError::NoDigests)))
            }
        }
    }
}

/// A digest as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DigestWord(pub(crate) MessageDigest, pub(crate) Vec<u8>);

impl FromStr for DigestWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no digest: write sha256: and 64 hexadecimal digits, or sha512: and 128");
        let (name, digits) = text.split_once(':').ok_or_else(wrong)?;
        let algorithm = MessageDigest::ALL.into_iter().find(|digest| digest.name() == name).ok_or_else(wrong)?;
        let digest = hex::decode(digits).map_err(|_| wrong())?;
        if digest.len() == algorithm.output_len() { Ok(Self(algorithm, digest)) } else { Err(wrong()) }
    }
}

/// `theta sign`.
pub(crate) fn sign(args: &SignArgs, output: Output) -> Result<(), Failure> {
    if args.files.len() > 1 {
        return batch::sign_all(args, output);
    }
    let file = args.files.first().map(PathBuf::as_path);
    let source = file.map(Source::open).transpose()?;
    let derived = file.and_then(|file| files::with_suffix(file, "sig"));
    let target = Target::choose(args.output.as_deref(), derived)?;
    target.check_json(output.json())?;
    if let Some(source) = &source {
        target.check_input(source)?;
    }
    target.check_terminal("a signature")?;
    let randomizer = randomizer(args)?;
    let session = args.client.open_with(&args.approvals)?;
    let (client, name) = (session.client(), args.key.as_deref());
    let key = session.look_up(name, |keyring| keyring.choose(name, Purpose::Sign))?;
    form::check(args.format, key.public.suite())?;
    if let Some(secret) = &randomizer {
        check_seed(key.public.suite(), secret.expose().len()).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let asked = key.asked();
    let name_of_key = asked.as_str();
    let limit = longest(client.options().max_message_bytes);
    let name = source.as_ref().map_or_else(|| PathBuf::from("a digest"), |source| source.name.clone());
    let subject = match (source, &args.digest) {
        (Some(source), _) => Subject::read(source, &key, limit, randomizer.is_none())?,
        (None, Some(word)) => Subject::given(word, &key)?,
        (None, None) => return Err(Failure::internal("nothing to sign was named")),
    };
    let mut digest_word = None;
    let hashed = subject.digest(&key);
    let (answer, randomized_key) = match (subject, randomizer, args.slot) {
        (Subject::Digest(algorithm, digest), _, slot) => {
            let word = format!("{algorithm}:{}", hex::encode(&digest));
            output::note(format_args!("the nodes see the digest alone: {word}"));
            digest_word = Some(word);
            (session.block_on(client.sign_digest(name_of_key, digest.into(), slot))?, None)
        }
        (Subject::Message(message), None, None) => (session.block_on(client.sign(name_of_key, message.into()))?, None),
        (Subject::Message(message), None, Some(slot)) => {
            (session.block_on(client.sign_for_slot(name_of_key, message.into(), slot))?, None)
        }
        (Subject::Message(message), Some(secret), _) => {
            let asked = client.sign_randomized(name_of_key, message.into(), &secret);
            parted(session.block_on(asked)?)
        }
    };
    let recovery_id = hashed.and_then(|digest| client.recovery_id(name_of_key, &digest, &answer.result));
    let signature = form::written(args.format, &answer.result, recovery_id)?;
    let signed = Signed {
        signature: hex::encode(&signature),
        digest: digest_word,
        randomized_key,
        recovery_id,
        output: target.name(),
        provenance: Provenance::new(&asked, &answer),
    };
    signed.deliver(&name, &signature, &target, output)
}

/// The longest message that is sent to nodes that take messages of so many bytes from here.
fn longest(max_message_bytes: usize) -> usize {
    max_message_bytes.saturating_sub(1024).min(MAX_MESSAGE_LEN)
}

impl Signed {
    /// Writes the signature of what has this name, and says so.
    fn deliver(&self, name: &Path, signature: &[u8], target: &Target, output: Output) -> Result<(), Failure> {
        let Self { provenance, randomized_key, .. } = self;
        provenance.warn_of_culprits();
        target.write(signature, false)?;
        let mut summary = format!(
            "signed {} with the key {} {}: {}",
            name.display(),
            provenance.key(),
            provenance.summary(),
            target.name().display()
        );
        if let Some(randomized_key) = randomized_key {
            summary.push_str(&format!("\nrandomized key  {randomized_key}"));
        }
        output.remark(self, &summary)
    }
}

/// The signature, and the key under which it verifies in hexadecimal.
fn parted(answer: Answer<RandomizedSignature>) -> (Answer<Bytes>, Option<String>) {
    let key = hex::encode(&answer.result.key);
    (answer.map(|randomized| randomized.signature), Some(key))
}

/// The randomizer, if one was asked for.
fn randomizer(args: &SignArgs) -> Result<Option<Secret<Vec<u8>>>, Failure> {
    if args.randomize {
        let mut secret = Secret::new(vec![0; MIN_SEED_LEN]);
        crate::random::generator()?.fill_bytes(secret.expose_mut());
        return Ok(Some(secret));
    }
    let decode = |digits: &String| {
        let wrong = |_| Failure::Usage("--randomizer takes hexadecimal digits, two for each byte".to_owned());
        hex::decode(digits.trim()).map(Secret::new).map_err(wrong)
    };
    args.randomizer.as_ref().map(decode).transpose()
}

/// `theta verify`.
pub(crate) fn verify(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let key = args.key.choose(Purpose::Sign)?;
    let subject = match (&args.file, &args.digest) {
        (_, Some(word)) => Subject::given(word, &key)?,
        (Some(file), None) => Subject::read(Source::open(file)?, &key, MAX_MESSAGE_LEN, args.randomized_key.is_none())?,
        (None, None) => return Err(Failure::internal("nothing to verify was named")),
    };
    let signature = read_signature(&args.signature)?;
    let given = || {
        args.digest
            .as_ref()
            .map_or_else(String::new, |DigestWord(name, digest)| format!("{name}:{}", hex::encode(digest)))
    };
    let file = args.file.as_ref().map_or_else(given, |file| file.display().to_string());
    let signature_file = args.signature.display();
    let randomized = args.randomized_key.as_deref().map(|digits| {
        check_seed(key.public.suite(), MIN_SEED_LEN).map_err(|error| Failure::Usage(error.to_string()))?;
        let wrong = |_| Failure::Usage("--randomized-key takes hexadecimal digits, two for each byte".to_owned());
        hex::decode(digits.trim()).map_err(wrong)
    });
    let randomized = randomized.transpose()?;
    let verify_bytes = |key: &NamedKey, signature: &[u8]| -> Result<(), SchemeError> {
        match (&subject, &randomized) {
            (Subject::Digest(_, digest), _) => key.public.verify_digest(digest, signature),
            (Subject::Message(message), None) => key.public.verify(message, signature, &[]),
            (Subject::Message(message), Some(randomized)) => {
                verify_with_key(&key.public, randomized, message, signature).map_err(Into::into)
            }
        }
    };
    let check = |key: &NamedKey| form::verify_any(key.public.suite(), &signature, |bytes| verify_bytes(key, bytes));
    let found = args.key.fitting(&key, check);
    let signer = match (&args.randomized_key, &found) {
        (None, Ok(found)) => format!("the key {}", found.full_name()),
        (None, Err(_)) => format!("the key {}", key.asked()),
        (Some(digits), _) => format!("the randomized key {}", digits.trim()),
    };
    let report = Verified {
        valid: found.is_ok(),
        reason: found.as_ref().err().map(ToString::to_string),
        key: key.name.as_str(),
        version: found.as_ref().ok().and_then(|found| found.version).map(Version::get),
    };
    let verdict = found.map(|found| found.state);
    output.result(&report, |out| match &verdict {
        Ok(state) => writeln!(out, "{file}: good signature of {signer}{}", aside(*state)),
        Err(_) => Ok(()),
    })?;
    verdict
        .map(drop)
        .map_err(|error| Failure::Failed(format!("{signature_file} is not a signature of {file} by {signer}: {error}")))
}

/// What there is to know of a key besides that it signed.
pub(crate) const fn aside(state: Option<KeyState>) -> &'static str {
    match state {
        Some(KeyState::Retired) => ", which is retired: newer versions sign now",
        Some(KeyState::Disabled) => ", which is disabled",
        Some(KeyState::Destroyed) => ", which is destroyed",
        Some(KeyState::Pending | KeyState::Active) | None => "",
    }
}

/// The bytes of a signature file, which may be in hexadecimal.
fn read_signature(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = Source::open(path)?.read_all(4096, "this is not the signature that was meant")?;
    let decoded = std::str::from_utf8(&bytes).ok().and_then(|digits| hex::decode(digits.trim()).ok());
    Ok(decoded.unwrap_or(bytes))
}
