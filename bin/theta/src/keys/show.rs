//! `theta keys list` and `theta keys show`.

use clap::Args;
use serde::Serialize;
use theta_client::{KeyState, Version};
use theta_keyfiles::PublicKeyText as _;
use theta_names::Delivery;
use theta_schemes::keys::{AnyPublicKey, TypedPublicKey};

use super::NamedKey;
use crate::{
    connect::ClientArgs,
    exit::Failure,
    output::{Output, Table},
};

/// Options of `theta keys list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys list              the public keys that the client knows, and their states when it last heard; asks nobody
  theta keys list --live       what the nodes have now: versions, states, epochs, holders

Two lines for one version mean that nodes differ: some have not heard yet of what was changed, or lie.")]
pub(crate) struct ListArgs {
    /// Ask the nodes
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `theta keys show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  theta keys show files\n  theta keys show files --live             versions, states, epochs and holders, as the nodes have them\n  theta keys show sign --file > sign.pub   for those who verify with theta; for others: theta keys export"
)]
pub(crate) struct ShowArgs {
    /// The key's name, or NAME@VERSION
    name: String,
    /// Print the public key file, which --public-key takes
    #[arg(long, conflicts_with_all = ["json", "live"])]
    file: bool,
    /// Ask the nodes for all versions
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct KeyView {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// As far as the ledger says.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// When it will be destroyed, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    destroyed_at: Option<u64>,
    suite: &'static str,
    scheme: &'static str,
    group: &'static str,
    #[serde(skip)]
    on: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
    purpose: &'static str,
    /// As far as the ledger says.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<&'static str>,
    /// As far as the ledger says, for keys with whose shares holders compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// What holders may do that turn against the key, where there is a protocol: "active" or "passive".
    #[serde(skip_serializing_if = "Option::is_none")]
    security: Option<&'static str>,
    /// Of how many of the holders that compute together that is true, where there is a protocol: "honest" or "dishonest".
    #[serde(skip_serializing_if = "Option::is_none")]
    majority: Option<&'static str>,
    threshold: u16,
    nodes: u16,
    key_id: String,
    public_key: String,
}

impl From<&NamedKey> for KeyView {
    fn from(key: &NamedKey) -> Self {
        let suite = key.public.suite();
        let bits = modulus_bits(&key.public);
        let computing = key.delivery.filter(|_| suite.takes_honest_majority());
        Self {
            name: key.name.to_string(),
            version: key.version.map(Version::get),
            state: key.state.map(KeyState::name),
            destroyed_at: key.doomed,
            suite: suite.name(),
            scheme: suite.scheme(),
            group: suite.group(),
            on: bits.map_or_else(|| suite.group().to_owned(), |bits| format!("{} {bits} bits", suite.group())),
            bits,
            purpose: suite.purpose().name(),
            delivery: key.delivery.map(Delivery::name),
            protocol: computing.map(|delivery| protocol(delivery, key.public.threshold().k())),
            security: computing.map(security),
            majority: computing.map(majority),
            threshold: key.public.threshold().k(),
            nodes: key.public.threshold().n(),
            key_id: key.public.key_id().to_string(),
            public_key: hex::encode(key.public.public_key_bytes()),
        }
    }
}

/// Who makes shares for a request.
fn in_words(delivery: Delivery, public: &AnyPublicKey) -> String {
    let threshold = public.threshold();
    match delivery {
        Delivery::All => "all: every node that is asked makes a share".to_owned(),
        Delivery::Quorum => {
            let makers = threshold.k().saturating_add(1).min(threshold.n());
            format!("quorum: the request draws {makers} nodes that make shares; the others stand by")
        }
        Delivery::Passive => "passive: every node that is asked takes part, and all follow the protocol".to_owned(),
        Delivery::DishonestMajority | Delivery::PassiveDishonestMajority => {
            format!(
                "{delivery}: {} nodes, drawn anew where one is down, compute each signature together",
                threshold.k()
            )
        }
    }
}

/// By which protocol the holders of an ECDSA key compute with its shares.
fn protocol(delivery: Delivery, k: u16) -> String {
    let (members, cheats) = (k.saturating_mul(2).saturating_sub(1), k.saturating_sub(1));
    let what = match delivery {
        Delivery::All | Delivery::Quorum => {
            format!("malicious Shamir among {members} of the holders, of which {cheats} may cheat")
        }
        Delivery::DishonestMajority => format!("MASCOT among {k} of the holders, of which all but one may cheat"),
        Delivery::Passive => format!("Shamir among {members} of the holders, all of which must follow the protocol"),
        Delivery::PassiveDishonestMajority => {
            format!("Semi-OT among {k} of the holders, all of which must follow the protocol")
        }
    };
    format!("{what} (security {}, majority {})", security(delivery), majority(delivery))
}

/// The word of `--security`.
const fn security(delivery: Delivery) -> &'static str {
    if delivery.is_passive() { "passive" } else { "active" }
}

/// The word of `--majority`.
const fn majority(delivery: Delivery) -> &'static str {
    if delivery.has_dishonest_majority() { "dishonest" } else { "honest" }
}

/// The size of an RSA key.
fn modulus_bits(public: &AnyPublicKey) -> Option<u32> {
    if let TypedPublicKey::Rsa(key) = public.typed() { Some(key.bits()) } else { None }
}

/// `theta keys list`.
pub(super) fn list(args: &ListArgs, output: Output) -> Result<(), Failure> {
    if args.live {
        return super::live::show(&args.client, None, output);
    }
    let keys = args.client.keyring().all()?;
    let views: Vec<KeyView> = keys.iter().map(KeyView::from).collect();
    output.result(&views, |out| {
        let mut table = Table::new(&["name", "state", "suite", "purpose", "takes", "key id"], &[]);
        for (view, key) in views.iter().zip(&keys) {
            table.row([
                view.name.clone(),
                key.state_in_words().unwrap_or_else(|| "-".to_owned()),
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
    if args.live {
        let key = args.name.parse().map_err(|error: theta_names::KeyRefError| Failure::Usage(error.to_string()))?;
        return super::live::show(&args.client, Some(&key), output);
    }
    let key = args.client.look_up(&args.name, |keyring| keyring.named(&args.name))?;
    if args.file {
        return output.result(&(), |out| out.write_all(key.public.to_text(&key.name).as_bytes()));
    }
    let view = KeyView::from(&key);
    output.result(&view, |out| {
        writeln!(out, "name        {}", view.name)?;
        if let (Some(version), Some(state)) = (view.version, key.state_in_words()) {
            writeln!(out, "version     {version} ({state})")?;
        }
        writeln!(out, "suite       {} ({} on {})", view.suite, view.scheme, view.on)?;
        writeln!(out, "purpose     {}", view.purpose)?;
        writeln!(out, "takes       {} of {} nodes", view.threshold, view.nodes)?;
        if let Some(delivery) = key.delivery {
            writeln!(out, "delivery    {}", in_words(delivery, &key.public))?;
        }
        if let Some(protocol) = &view.protocol {
            writeln!(out, "protocol    {protocol}")?;
        }
        writeln!(out, "key id      {}", view.key_id)?;
        writeln!(out, "public key  {}", view.public_key)
    })
}
