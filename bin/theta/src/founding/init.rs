//! `theta node init`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;
use theta_names::{Address, NodeName};
use theta_service::config::ListenConfig;

use super::{About, CARD, NodeKeys, OPERATOR, config, parse_address};
use crate::{
    access::now,
    exit::Failure,
    files::{DraftDirectory, write_new},
    group::permissions,
    interrupt::Whole,
    output::Output,
    vault::SealWord,
};

/// Options of `theta node init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node init --dir alpha --name \"Alpha Trust\" --peer theta.alpha.example:7100 --clients theta.alpha.example:7101
  theta node init --dir alpha --name alpha --peer 192.0.2.7:7100 --clients 192.0.2.7:7101 --seal credential:theta
  theta node init --dir alpha --name alpha --peer nat.example:17100 --clients nat.example:17101 --listen-peer 10.0.0.4:7100 --listen-clients 10.0.0.4:7101

It makes the keys of a new node here, where they stay, and DIR/node.card, which is public: send it to whoever puts the group \
together (theta group assemble), by mail if you like. A name of a host is looked up each time that somebody connects; then the \
node listens on all IPv4 addresses of the machine, unless --listen-peer and --listen-clients say otherwise. Nobody may ask the node \
for anything until its policy.toml says so.")]
pub struct InitArgs {
    /// Directory to make, for this node alone
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// What people call the node, in plain ASCII: it is read aloud
    #[arg(long, value_name = "NAME")]
    name: NodeName,
    /// Where the other nodes reach it
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    peer: Address,
    /// Where clients reach it
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    clients: Address,
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
    /// How the node's store is sealed: file:PATH, passphrase-file:PATH, env:NAME or credential:NAME
    #[arg(long, value_name = "SEALING", default_value_t)]
    seal: SealWord,
}

#[derive(Serialize)]
struct Made<'a> {
    directory: &'a PathBuf,
    name: &'a str,
    card: PathBuf,
    operator_key: PathBuf,
}

fn parse_loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| format!("{text:?} is no address: write 127.0.0.1:7102"))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!("{address} is not a loopback address, and nothing protects metrics: write 127.0.0.1:7102"))
    }
}

/// Where a node listens that is reached there.
fn listen_for(address: &Address) -> SocketAddr {
    let ip = match address.host() {
        "localhost" => IpAddr::from(Ipv4Addr::LOCALHOST),
        host => host.parse().unwrap_or(IpAddr::from(Ipv4Addr::UNSPECIFIED)),
    };
    SocketAddr::new(ip, address.port())
}

impl InitArgs {
    fn listen(&self) -> ListenConfig {
        let next = self.clients.port().checked_add(1).filter(|port| *port != self.peer.port());
        ListenConfig {
            peer: self.listen_peer.unwrap_or_else(|| listen_for(&self.peer)),
            api: self.listen_clients.unwrap_or_else(|| listen_for(&self.clients)),
            metrics: self.metrics.or_else(|| Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), next?))),
        }
    }
}

/// The file beside a node's directory, and not in it: whoever has the one, or a copy of it, has not the other.
fn beside(dir: &std::path::Path) -> PathBuf {
    let mut file = dir.components().as_path().as_os_str().to_owned();
    file.push(".");
    file.push(OPERATOR);
    PathBuf::from(file)
}

/// Makes a node's keys and its card.
pub(crate) fn init(args: &InitArgs, output: Output) -> Result<(), Failure> {
    let draft = DraftDirectory::new(&args.dir, 0o700, "name another with --dir")?;
    let about = About { name: args.name.clone(), peer: args.peer.clone(), api: args.clients.clone(), number: None };
    let keys = NodeKeys::generate(about, now().0 / 1_000, &mut crate::random::generator()?)?;
    let config = config::new(args.listen(), &args.seal.clone().made_absolute()?);
    write_new(&config::file(draft.path()), config::text(&config)?.as_bytes(), false)?;
    write_new(&draft.path().join("policy.toml"), permissions::of_nobody().as_bytes(), false)?;
    drop(keys.write(draft.path(), config)?);
    let operator_key = args.operator_key.clone().unwrap_or_else(|| beside(&args.dir));
    // A signal between the two would leave a key of no node.
    let _whole = Whole::begin()?;
    keys.write_operator(&operator_key)?;
    draft.commit().inspect_err(|_| drop(std::fs::remove_file(&operator_key)))?;
    let made = Made { directory: &args.dir, name: args.name.as_str(), card: args.dir.join(CARD), operator_key };
    output.result(&made, |out| {
        let dir = args.dir.display();
        writeln!(out, "made a node in {dir}; its keys are there and nowhere else")?;
        writeln!(out, "made the key of its operator: {}", made.operator_key.display())?;
        writeln!(out, "\nNext:")?;
        writeln!(out, "  take {} off this machine, and keep it twice:", made.operator_key.display())?;
        writeln!(out, "  you sign with it what the node must not decide, such as another machine in its place")?;
        writeln!(out, "  send {}, which is public, to whoever puts the group together", made.card.display())?;
        writeln!(out, "  theta node join --dir {dir} FILE --fingerprint ...      with the founding that comes back")
    })
}
