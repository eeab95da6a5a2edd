//! `theta sign` and `theta verify`.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use rand_core::Rng;
use serde::Serialize;
use theta_client::{Answer, RandomizedSignature};
use theta_schemes::{
    MAX_MESSAGE_LEN, Purpose,
    groups::Secret,
    signatures::frost::{MIN_SEED_LEN, check_seed, verify_with_key},
};

use crate::{
    access::ApprovalFiles,
    connect::{ClientArgs, Provenance},
    exit::Failure,
    files::{self, Source, Target},
    keys::KeyArgs,
    output::Output,
};

/// Options of `theta sign`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta sign contract.pdf                  writes contract.pdf.sig
  theta sign contract.pdf --key beacon           a BLS signature of 48 bytes instead of 96
  theta sign contract.pdf --key sign-ed25519     an Ed25519 signature
  theta sign vote.bin --key chain --slot 48211   one message for a slot, if the policy says so
  theta sign app.tar --key release --approval ann.approval --approval ben.approval
  theta sign contract.pdf --key sign-ed25519 --randomize   under a fresh key that only this client can link to the group's
  echo hello | theta sign - | xxd

The output is the bare signature, as the standard verifiers of its kind take it with the key of theta keys export: IETF BLS \
(bls04), Ed25519 and Ed448 of RFC 8032 and BIP-340 (frost), PKCS#1 v1.5 and PSS (sh00). For example:
  openssl pkeyutl -verify -rawin -pubin -inkey key.pem -in contract.pdf -sigfile contract.pdf.sig     Ed25519
  openssl dgst -sha256 -verify key.pem -signature contract.pdf.sig contract.pdf                       RSA, PKCS#1 v1.5")]
pub(crate) struct SignArgs {
    /// What to sign; - for standard input
    file: PathBuf,
    /// Where to write the signature; - for standard output [default: FILE.sig, or standard output for standard input]
    #[arg(short, long, value_name = "SIG")]
    output: Option<PathBuf>,
    /// Name of the key [default: sign, or the only one for signatures]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
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
#[command(after_help = "\
Examples:
  theta verify contract.pdf contract.pdf.sig
  theta verify contract.pdf contract.pdf.sig --public-key sign.pub
  theta verify contract.pdf contract.pdf.sig --key sign-ed25519 --randomized-key 3b6a27bc...

Exit code 0 if the signature verifies, 1 if it does not.")]
pub(crate) struct VerifyArgs {
    /// What was signed; - for standard input
    file: PathBuf,
    /// The signature, as bytes or in hexadecimal
    signature: PathBuf,
    /// Verify with this key, in hexadecimal, as theta sign --randomize printed it; --key tells the suite
    #[arg(long, value_name = "HEX")]
    randomized_key: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Signed {
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    randomized_key: Option<String>,
    output: PathBuf,
    #[serde(flatten)]
    provenance: Provenance,
}

#[derive(Serialize)]
struct Verified<'a> {
    valid: bool,
    reason: Option<String>,
    key: &'a str,
}

/// `theta sign`.
pub(crate) fn sign(args: &SignArgs, output: Output) -> Result<(), Failure> {
    let source = Source::open(&args.file)?;
    let target = Target::choose(args.output.as_deref(), files::with_suffix(&args.file, "sig"))?;
    target.check_json(output.json())?;
    target.check_input(&source)?;
    target.check_terminal("a signature")?;
    let key = args.client.keyring().choose(args.key.as_deref(), Purpose::Sign)?;
    let randomizer = randomizer(args)?;
    if let Some(secret) = &randomizer {
        check_seed(key.public.suite(), secret.expose().len()).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let session = args.client.open_with(&args.approvals)?;
    let (name, limit) = (source.name.clone(), session.client().options().max_message_bytes);
    let message = source.read_all(limit.saturating_sub(1024).min(MAX_MESSAGE_LEN), "sign its digest instead")?;
    let (client, name_of_key) = (session.client(), key.name.as_str());
    let (answer, randomized_key) = match (randomizer, args.slot) {
        (None, None) => (session.block_on(client.sign(name_of_key, message.into()))?, None),
        (None, Some(slot)) => (session.block_on(client.sign_for_slot(name_of_key, message.into(), slot))?, None),
        (Some(secret), _) => {
            let asked = client.sign_randomized(name_of_key, message.into(), &secret);
            parted(session.block_on(asked)?)
        }
    };
    let provenance = Provenance::new(key.name.as_str(), &answer);
    provenance.warn_of_culprits();
    target.write(&answer.result, false)?;
    let mut summary = format!(
        "signed {} with the key {} {}: {}",
        name.display(),
        key.name,
        provenance.summary(),
        target.name().display()
    );
    if let Some(randomized_key) = &randomized_key {
        summary.push_str(&format!("\nrandomized key  {randomized_key}"));
    }
    let signature = hex::encode(&answer.result);
    output.remark(&Signed { signature, randomized_key, output: target.name(), provenance }, &summary)
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
    let message = Source::open(&args.file)?.read_all(MAX_MESSAGE_LEN, "sign and verify its digest instead")?;
    let signature = read_signature(&args.signature)?;
    let (file, signature_file) = (args.file.display(), args.signature.display());
    let verdict = match &args.randomized_key {
        None => key.public.verify(&message, &signature, &[]),
        Some(digits) => {
            let suite = key.public.suite();
            check_seed(suite, MIN_SEED_LEN).map_err(|error| Failure::Usage(error.to_string()))?;
            let wrong = |_| Failure::Usage("--randomized-key takes hexadecimal digits, two for each byte".to_owned());
            let randomized = hex::decode(digits.trim()).map_err(wrong)?;
            verify_with_key(&key.public, &randomized, &message, &signature).map_err(Into::into)
        }
    };
    let signer = match &args.randomized_key {
        None => format!("the key {}", key.name),
        Some(digits) => format!("the randomized key {}", digits.trim()),
    };
    let report = Verified {
        valid: verdict.is_ok(),
        reason: verdict.as_ref().err().map(ToString::to_string),
        key: key.name.as_str(),
    };
    output.result(&report, |out| match &verdict {
        Ok(()) => writeln!(out, "{file}: good signature of {signer}"),
        Err(_) => Ok(()),
    })?;
    verdict
        .map_err(|error| Failure::Failed(format!("{signature_file} is not a signature of {file} by {signer}: {error}")))
}

/// The bytes of a signature file, which may be in hexadecimal.
fn read_signature(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = Source::open(path)?.read_all(4096, "this is not the signature that was meant")?;
    let decoded = std::str::from_utf8(&bytes).ok().and_then(|digits| hex::decode(digits.trim()).ok());
    Ok(decoded.unwrap_or(bytes))
}
