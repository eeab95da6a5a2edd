//! `theta node init`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use theta_ledger::{OperatorId, founding::Card};
use theta_names::{Address, NodeName, WallTime};
use theta_network::Fingerprint;
use theta_service::{
    NodeConfig,
    config::{HostConfig, ListenConfig, TransportKind},
};

use super::{About, CARD, NodeKeys, OPERATOR, cards_of_members, config, parse_address};
use crate::{
    exit::Failure,
    files::{DraftDirectory, read_text, write_new},
    group::permissions,
    interrupt::Whole,
    members::aloud,
    output::Output,
    vault::SealWord,
};

const POLICY: &str = "policy.toml";

/// Options of `theta node init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node init --dir alpha --name \"Alpha Trust\" --peer theta.alpha.example:7100 --clients theta.alpha.example:7101
  theta node init --dir alpha --name alpha --peer 192.0.2.7:7100 --clients 192.0.2.7:7101 --seal credential:theta
  theta node init --dir gamma2 --replaces gamma.card
  theta node init --dir alpha --name alpha --peer 192.0.2.7:7100 --clients 192.0.2.7:7101 --transport p2p-proxy --host localhost:7300 --host-fingerprint 5d3a...
  theta node init --dir alpha --name alpha --peer nat.example:17100 --clients nat.example:17101 --listen-peer 10.0.0.4:7100 --listen-clients 10.0.0.4:7101

It makes the keys of a new node here, where they stay, and DIR/node.card, which is public: send it to whoever puts the group \
together (theta group assemble), by mail if you like. A name of a host is looked up each time that somebody connects; then the \
node listens on all IPv4 addresses of the machine, unless --listen-peer and --listen-clients say otherwise. Nobody may ask the node \
for anything until its policy.toml says so.

With --replaces it makes a machine for the place of one that lost its store, or everything: with new keys of its own, the same name, and the same operator, \
whose key is not needed for this. The addresses are those of before, unless others are given; so are the rules \
(policy.toml), if its directory is still there to be named. Then the group has to be told (theta group replace), \
and the machine to join (theta node join).")]
pub struct InitArgs {
    /// Directory to make, for this node alone
    #[arg(long, value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// What people call the node, in plain ASCII: it is read aloud
    #[arg(long, value_name = "NAME", required_unless_present = "replaces")]
    pub(super) name: Option<NodeName>,
    /// Where the other nodes reach it
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address, required_unless_present = "replaces")]
    peer: Option<Address>,
    /// Where clients reach it
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address, required_unless_present = "replaces")]
    clients: Option<Address>,
    /// The member in whose place it comes: an old card of it, or its directory; or, with --name, the group's founding or its exported ledger
    #[arg(long, value_name = "FILE", conflicts_with = "operator_key")]
    pub(super) replaces: Option<PathBuf>,
    /// Where the operator's key is written, which is not to stay on this machine [default: DIR.operator]
    #[arg(long, value_name = "FILE")]
    operator_key: Option<PathBuf>,
    /// Where it listens for the other nodes, if not there
    #[arg(long, value_name = "IP:PORT")]
    listen_peer: Option<SocketAddr>,
    /// Where it listens for clients, if not there
    #[arg(long, value_name = "IP:PORT")]
    listen_clients: Option<SocketAddr>,
    /// Where it serves metrics, on loopback [default: the port after that for clients]
    #[arg(long, value_name = "IP:PORT", value_parser = parse_loopback)]
    metrics: Option<SocketAddr>,
    /// What carries the messages between the nodes, the same at all of them: mesh, p2p-proxy for the network of a host, or gossip in a build that has it
    #[arg(long, value_name = "TRANSPORT", default_value_t)]
    transport: TransportKind,
    /// Where the host listens for this node
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address, requires = "host_fingerprint")]
    host: Option<Address>,
    /// The SHA-256 of the host's public key, 64 hexadecimal digits
    #[arg(long, value_name = "FINGERPRINT", requires = "host")]
    host_fingerprint: Option<Fingerprint>,
    /// How the node's store is sealed: file:PATH, passphrase-file:PATH, env:NAME or credential:NAME
    #[arg(long, value_name = "SEALING", default_value_t)]
    seal: SealWord,
}

/// A node that was made.
#[derive(Serialize)]
pub(super) struct Made<'a> {
    directory: &'a PathBuf,
    name: String,
    card: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator_key: Option<PathBuf>,
    /// The key of ceremonies, as it is read aloud.
    key: String,
}

fn parse_loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| format!("{text:?} is no address: write 127.0.0.1:7102"))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!("{address} is not a loopback address, and nothing protects metrics: write 127.0.0.1:7102"))
    }
}

/// The card of the member in whose place a machine comes, as old as it may be: what counts of it is what stays the same.
pub(super) fn predecessor(file: &Path, name: Option<&NodeName>) -> Result<Card, Failure> {
    let inside = file.join(CARD);
    let file = if file.is_dir() { inside.as_path() } else { file };
    let mut cards = cards_of_members(file)?;
    if let Some(name) = name {
        cards.retain(|card| card.name().folded() == name.folded());
    }
    let found = cards.len();
    match <[Card; 1]>::try_from(cards) {
        Ok([card]) => Ok(card),
        Err(_) if found == 0 => Err(Failure::Usage(format!("{} has no card of a node of that name", file.display()))),
        Err(_) => {
            Err(Failure::Usage(format!("{} has the cards of {found} nodes: say which with --name", file.display())))
        }
    }
}

impl InitArgs {
    fn listen(&self, about: &About) -> ListenConfig {
        let ListenConfig { peer, api, metrics } = config::listen_at(&about.peer, &about.api);
        ListenConfig {
            peer: self.listen_peer.unwrap_or(peer),
            api: self.listen_clients.unwrap_or(api),
            metrics: self.metrics.or(metrics),
        }
    }

    /// How the node reaches the others.
    fn reach(&self, config: &mut NodeConfig) -> Result<(), Failure> {
        let host = self.host.as_ref().zip(self.host_fingerprint);
        if let Some(missing) = self.transport.missing() {
            return Err(Failure::Usage(missing.to_owned()));
        }
        match (self.transport, host) {
            (TransportKind::P2pProxy, None) => {
                return Err(Failure::Usage("--transport p2p-proxy takes --host and --host-fingerprint".to_owned()));
            }
            (TransportKind::Mesh | TransportKind::Gossip, Some(_)) => {
                return Err(Failure::Usage("--host takes --transport p2p-proxy".to_owned()));
            }
            (transport, host) => {
                config.transport = transport;
                config.host = host.map(|(address, fingerprint)| HostConfig::new(address, fingerprint));
            }
        }
        Ok(())
    }

    /// What the node is called and where it is reached, and the key of its operator, if it has one.
    fn about(&self) -> Result<(About, Option<OperatorId>), Failure> {
        let before = self.replaces.as_deref().map(|file| predecessor(file, self.name.as_ref())).transpose()?;
        let before = before.as_ref().map(Card::content);
        let given = (
            self.name.clone().or_else(|| before.map(|card| card.name.clone())),
            self.peer.clone().or_else(|| before.map(|card| card.peer_address.clone())),
            self.clients.clone().or_else(|| before.map(|card| card.api_address.clone())),
        );
        let (Some(name), Some(peer), Some(api)) = given else {
            return Err(Failure::internal("a node without a name or an address"));
        };
        Ok((About { name, peer, api, number: None }, before.map(|card| card.operator_key)))
    }
}

/// The file beside a node's directory, and not in it: whoever has the one, or a copy of it, has not the other.
fn beside(dir: &Path) -> PathBuf {
    let mut file = dir.components().as_path().as_os_str().to_owned();
    file.push(".");
    file.push(OPERATOR);
    PathBuf::from(file)
}

/// Makes a node's keys and its card.
pub(crate) fn init(args: &InitArgs, output: Output) -> Result<(), Failure> {
    report(&make(args)?, output)
}

/// The same without a word.
pub(super) fn make(args: &InitArgs) -> Result<Made<'_>, Failure> {
    let draft = DraftDirectory::new(&args.dir, 0o700, "name another with --dir")?;
    let (about, operator) = args.about()?;
    let mut config = config::new(args.listen(&about), &args.seal.clone().made_absolute()?);
    args.reach(&mut config)?;
    let keys = NodeKeys::generate(about, operator, WallTime::now().seconds(), &mut crate::random::generator()?)?;
    write_new(&config::file(draft.path()), config::text(&config)?.as_bytes(), false)?;
    // Of a machine that lost its store alone, the rules are still there.
    let rules = args.replaces.as_ref().map(|dir| dir.join(POLICY)).filter(|file| file.is_file());
    let policy = rules.map_or_else(|| Ok(permissions::of_nobody()), |file| read_text(&file))?;
    write_new(&draft.path().join(POLICY), policy.as_bytes(), false)?;
    drop(keys.write(draft.path(), config)?);
    let operator_key = args.operator_key.clone().unwrap_or_else(|| beside(&args.dir));
    let operator_key = operator.is_none().then_some(operator_key);
    // A signal between the two would leave a key of no node.
    let _whole = Whole::begin()?;
    if let Some(file) = &operator_key {
        keys.write_operator(file)?;
    }
    draft.commit().inspect_err(|_| {
        if let Some(file) = &operator_key {
            drop(std::fs::remove_file(file));
        }
    })?;
    let content = keys.card().content();
    Ok(Made {
        directory: &args.dir,
        name: content.name.to_string(),
        card: args.dir.join(CARD),
        operator_key,
        key: aloud(&content.ceremony_key),
    })
}

fn report(made: &Made<'_>, output: Output) -> Result<(), Failure> {
    output.result(made, |out| {
        let (dir, card) = (made.directory.display(), made.card.display());
        writeln!(out, "made a node in {dir}; its keys are there and nowhere else")?;
        let Some(operator_key) = &made.operator_key else {
            writeln!(out, "its key, to be compared aloud:\n\n  {}", made.key)?;
            writeln!(out, "\nNext:")?;
            writeln!(out, "  send {card}, which is public, to whoever puts it in its place: theta group replace N {card}")?;
            return writeln!(out, "  theta node join --dir {dir} FILE --fingerprint ...      with the ledger of the group after that");
        };
        writeln!(out, "made the key of its operator: {}", operator_key.display())?;
        writeln!(out, "\nNext:")?;
        writeln!(out, "  take {} off this machine, and keep it twice:", operator_key.display())?;
        writeln!(out, "  you sign with it what the node must not decide, such as another machine in its place")?;
        writeln!(out, "  send {card}, which is public, to whoever puts the group together, or takes the node into a running one")?;
        writeln!(out, "  theta node join --dir {dir} FILE --fingerprint ...      with the founding, or the ledger, that comes back")
    })
}
