//! `theta keys export`: public keys in the formats of other software.

use base64ct::{Base64, Encoding};
use clap::{Args, ValueEnum};
use serde::Serialize;
use theta_client::Version;
use theta_keyfiles::public_key_info;
use theta_schemes::{
    Suite,
    keys::{AnyPublicKey, PublicParts},
    signatures::{ecdsa::uncompressed_key, sh00::PUBLIC_EXPONENT},
};

use super::NamedKey;
use crate::{connect::ClientDir, exit::Failure, files::Target, output::Output};

/// How a public key is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A `SubjectPublicKeyInfo` between lines, as OpenSSL has it (Ed25519, Ed448, P-256, secp256k1, RSA; for ECDSA without
    /// compression, which some verifiers cannot undo)
    Pem,
    /// The standard encoding in hexadecimal digits
    Hex,
    /// The standard encoding as bytes; for RSA, DER
    Raw,
    /// A line of `authorized_keys` (Ed25519)
    Ssh,
    /// The data of a DNSKEY record, with the flags of a key that signs keys (Ed25519, ECDSA on P-256, RSA with PKCS #1)
    Dnskey,
}

/// Options of `theta keys export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys export sign-ed25519 > key.pem
  openssl pkeyutl -verify -rawin -pubin -inkey key.pem -in letter.txt -sigfile letter.txt.sig
  theta keys export wallet --format hex          ECDSA: the point, compressed, as Bitcoin and Ethereum libraries read it
  theta keys export sign-ed25519 --format ssh >> authorized_keys
  theta keys export zone-ecdsa-p256-1 --format dnskey >> zone.keys")]
pub(crate) struct ExportArgs {
    /// The key's name, or NAME@VERSION
    name: String,
    /// How to write it [default: pem where there is such a form, else hex]
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
    #[command(flatten)]
    client: ClientDir,
}

#[derive(Serialize)]
struct PublicView<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    suite: &'static str,
    pem: Option<String>,
    ssh: Option<String>,
    dnskey: Option<String>,
    hex: String,
}

/// `theta keys export`.
pub(super) fn export(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let key = args.client.look_up(Some(&args.name), |keyring| keyring.named(&args.name))?;
    let bytes = key.public.verifying_key_bytes();
    let view = PublicView {
        name: key.name.as_str(),
        version: key.version.map(Version::get),
        suite: key.public.suite().name(),
        pem: pem(&key.public),
        ssh: ssh(&key),
        dnskey: dnskey(&key.public),
        hex: hex::encode(bytes),
    };
    let has_none = |form: &str| {
        let suite = view.suite;
        Failure::Usage(format!("public keys of {suite} have no {form} form: take --format hex or raw"))
    };
    let text = match args.format {
        None => view.pem.clone().unwrap_or_else(|| format!("{}\n", view.hex)).into_bytes(),
        Some(Form::Pem) => view.pem.clone().ok_or_else(|| has_none("PEM"))?.into_bytes(),
        Some(Form::Ssh) => format!("{}\n", view.ssh.as_ref().ok_or_else(|| has_none("SSH"))?).into_bytes(),
        Some(Form::Dnskey) => format!("{}\n", view.dnskey.as_ref().ok_or_else(|| has_none("DNSKEY"))?).into_bytes(),
        Some(Form::Hex) => format!("{}\n", view.hex).into_bytes(),
        Some(Form::Raw) => bytes.to_vec(),
    };
    if args.format == Some(Form::Raw) && !output.json() {
        Target::Stdout.check_terminal("a raw public key")?;
    }
    output.result(&view, |out| out.write_all(&text))
}

/// The key between `BEGIN PUBLIC KEY` lines, if its suite has that format.
pub fn pem(public: &AnyPublicKey) -> Option<String> {
    let digits = Base64::encode_string(&public_key_info(public)?);
    let mut text = String::from("-----BEGIN PUBLIC KEY-----\n");
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text.push_str("-----END PUBLIC KEY-----\n");
    Some(text)
}

/// `ssh-ed25519 AAAA... name` (RFC 4253, section 6.6, and RFC 8709, section 4).
fn ssh(key: &NamedKey) -> Option<String> {
    const ALGORITHM: &str = "ssh-ed25519";
    if key.public.suite() != Suite::FrostEd25519 {
        return None;
    }
    let mut blob = Vec::new();
    for field in [ALGORITHM.as_bytes(), key.public.public_key_bytes()] {
        blob.extend_from_slice(&u32::try_from(field.len()).ok()?.to_be_bytes());
        blob.extend_from_slice(field);
    }
    Some(format!("{ALGORITHM} {} {}", Base64::encode_string(&blob), key.name))
}

/// Flags, protocol, algorithm and key of a DNSKEY record in text (RFC 4034, section 2.2). The flags are those of a key that signs keys, 257:
/// which keys a name server signs its zone with is its own matter.
fn dnskey(public: &AnyPublicKey) -> Option<String> {
    let (algorithm, key) = match (public.suite(), public.parts()) {
        // RFC 8080, section 3.
        (Suite::FrostEd25519, _) => (15, public.public_key_bytes().to_vec()),
        // RFC 6605, section 4: x and y, without the byte before them that says that both are there.
        (Suite::EcdsaP256, _) => (13, uncompressed_key(public)?.get(1..)?.to_vec()),
        // RFC 5702, section 2.
        (Suite::Sh00Pkcs1Sha256, PublicParts::Rsa { modulus, .. }) => (8, rsa(&modulus)?),
        (Suite::Sh00Pkcs1Sha512, PublicParts::Rsa { modulus, .. }) => (10, rsa(&modulus)?),
        _ => return None,
    };
    Some(format!("257 3 {algorithm} {}", Base64::encode_string(&key)))
}

/// A key of RSA as RFC 3110, section 2, writes it: the exponent's length, the exponent, the modulus.
fn rsa(modulus: &[u8]) -> Option<Vec<u8>> {
    let exponent: Vec<u8> = PUBLIC_EXPONENT.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    Some([&[u8::try_from(exponent.len()).ok()?], &exponent[..], modulus].concat())
}
