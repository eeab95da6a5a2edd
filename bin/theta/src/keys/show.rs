//! `theta keys list` and `theta keys show`.

use clap::Args;
use serde::Serialize;
use theta_schemes::keys::AnyPublicKey;

use super::NamedKey;
use crate::{
    connect::ClientDir,
    exit::Failure,
    output::{Output, Table},
};

/// Options of `theta keys list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    client: ClientDir,
}

/// Options of `theta keys show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  theta keys show files\n  theta keys show sign --file > sign.pub   for those who verify with theta; for others: theta keys public"
)]
pub(crate) struct ShowArgs {
    /// The key's name
    name: String,
    /// Print the public key file, which --public-key takes
    #[arg(long, conflicts_with = "json")]
    file: bool,
    #[command(flatten)]
    client: ClientDir,
}

#[derive(Serialize)]
struct KeyView {
    name: String,
    suite: &'static str,
    scheme: &'static str,
    group: &'static str,
    #[serde(skip)]
    on: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
    purpose: &'static str,
    threshold: u16,
    nodes: u16,
    key_id: String,
    public_key: String,
}

impl From<&NamedKey> for KeyView {
    fn from(key: &NamedKey) -> Self {
        let suite = key.public.suite();
        let bits = modulus_bits(&key.public);
        Self {
            name: key.name.to_string(),
            suite: suite.name(),
            scheme: suite.scheme(),
            group: suite.group(),
            on: bits.map_or_else(|| suite.group().to_owned(), |bits| format!("{} {bits} bits", suite.group())),
            bits,
            purpose: suite.purpose().name(),
            threshold: key.public.threshold().k(),
            nodes: key.public.threshold().n(),
            key_id: key.public.key_id().to_string(),
            public_key: hex::encode(key.public.public_key_bytes()),
        }
    }
}

/// The size of an RSA key.
fn modulus_bits(public: &AnyPublicKey) -> Option<u32> {
    match public {
        AnyPublicKey::Sh00Pkcs1Sha256(key)
        | AnyPublicKey::Sh00Pkcs1Sha512(key)
        | AnyPublicKey::Sh00PssSha256(key)
        | AnyPublicKey::Cks05Sh00(key) => Some(key.bits()),
        _ => None,
    }
}

/// `theta keys list`.
pub(super) fn list(args: &ListArgs, output: Output) -> Result<(), Failure> {
    let keys = args.client.keyring().all()?;
    let views: Vec<KeyView> = keys.iter().map(KeyView::from).collect();
    output.result(&views, |out| {
        let mut table = Table::new(&["name", "suite", "purpose", "takes", "key id"], &[]);
        for (view, key) in views.iter().zip(&keys) {
            table.row([
                view.name.clone(),
                view.suite.to_owned(),
                view.purpose.to_owned(),
                key.public.threshold().to_string(),
                key.public.key_id().abbreviated(),
            ]);
        }
        table.write(out)
    })
}

/// `theta keys show`.
pub(super) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let key = args.client.keyring().named(&args.name)?;
    if args.file {
        return output.result(&(), |out| out.write_all(key.public.to_text(&key.name).as_bytes()));
    }
    let view = KeyView::from(&key);
    output.result(&view, |out| {
        writeln!(out, "name        {}", view.name)?;
        writeln!(out, "suite       {} ({} on {})", view.suite, view.scheme, view.on)?;
        writeln!(out, "purpose     {}", view.purpose)?;
        writeln!(out, "takes       {} of {} nodes", view.threshold, view.nodes)?;
        writeln!(out, "key id      {}", view.key_id)?;
        writeln!(out, "public key  {}", view.public_key)
    })
}
