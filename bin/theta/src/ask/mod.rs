//! `theta coin`, `theta verify-coin`, `theta status`.

mod batch;
pub(crate) mod quarantines;
mod stocks;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use theta_client::{NodeStatus, Problem, Version};
use theta_schemes::{MAX_COIN_NAME_LEN, Purpose};
use theta_wire::v1;
use tonic::Code;

use self::{quarantines::QuarantineView, stocks::StockView};
use crate::{
    access::ApprovalFiles,
    connect::{self, ClientArgs, Provenance},
    culprits::{self, CulpritView},
    drand::{self, Beacon, CoinKey, ForeignKey, RoundArgs},
    exit::{self, Failure},
    files::{Source, Target},
    keys::KeyArgs,
    output::{BAD, GOOD, Output, Table},
    signature::aside,
    units,
};

/// Options of `theta coin`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta coin 'lottery of 21 November'
  theta coin round-17 --proof round-17.proof    for theta verify-coin
  theta coin seat-1 seat-2 seat-3               a line for each: its value and its name
  theta coin --round 17 --json                  a beacon's round as drand publishes it (keys of cks05-bls04-*)

The same name always gives the same 32 bytes, at every node; nobody knows them before k nodes were asked.")]
pub(crate) struct CoinArgs {
    /// The coin's name, or the names of several
    #[arg(id = "name", value_name = "NAME", required_unless_present = "round")]
    names: Vec<String>,
    #[command(flatten)]
    round: RoundArgs,
    /// Name of the key, or NAME@VERSION [default: coin, or the only one for coins]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Write the proof, with which anybody can check the value
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `theta verify-coin`.
#[derive(Debug, Args)]
// clap allows no optional argument before a required one, except like this: the name is absent with --round.
#[command(allow_missing_positional = true)]
#[command(after_help = "\
Examples:
  theta verify-coin round-17 c0ffee... --proof round-17.proof
  theta verify-coin --round 17 c0ffee... --proof signature.hex
  theta verify-coin round-17 c0ffee... --proof 8bd3a0...      as theta coin --json prints it
  theta verify-coin round-17 c0ffee... --proof round-17.proof --public-key coin.pub
  theta verify-coin --round 1000000 c0ffee... --proof signature.hex --beacon-key 83cf0f28...   a round of drand

Exit code 0 if this is the coin, 1 if it is not.")]
pub(crate) struct VerifyCoinArgs {
    /// The coin's name
    #[arg(required_unless_present = "round")]
    name: Option<String>,
    /// The value in hexadecimal, as theta coin prints it
    value: String,
    /// The proof: a file as theta coin --proof writes it, or in hexadecimal, or the hexadecimal digits themselves
    #[arg(long, value_name = "FILE|HEX")]
    proof: PathBuf,
    #[command(flatten)]
    round: RoundArgs,
    /// Public key in hexadecimal of a beacon that is not ours, as drand publishes it; no client directory is needed then
    #[arg(long, value_name = "HEX", requires = "round", conflicts_with_all = ["key", "public_key"])]
    beacon_key: Option<ForeignKey>,
    #[command(flatten)]
    key: KeyArgs,
}

/// Options of `theta status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta status
  theta status --json --timeout 2s

What is made in advance: presignatures of ECDSA at any time, up to the level; commitments of FROST come with signatures, so that 0 is none yet.

Exit code 3 if fewer nodes answer than it takes to decrypt, sign or draw, 1 if enough are there and refuse this client.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct Coin {
    name: String,
    value: String,
    proof: String,
    #[serde(flatten)]
    provenance: Provenance,
}

#[derive(Serialize)]
struct CoinVerdict<'a> {
    valid: bool,
    reason: Option<String>,
    key: &'a str,
    /// The version that drew it, if it is known.
    version: Option<u32>,
}

#[derive(Serialize)]
struct Status {
    group: String,
    threshold: u16,
    up: usize,
    nodes: Vec<NodeView>,
    culprits: Vec<CulpritView>,
    /// What the nodes have ahead of signatures, by key; those that list no keys to this client are left out.
    stocks: Vec<StockView>,
    /// Sets of holders of keys in which somebody cheated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quarantined: Vec<QuarantineView>,
}

#[derive(Serialize)]
struct NodeView {
    node: u16,
    address: String,
    up: bool,
    state: NodeState,
    problem: Option<String>,
    version: Option<String>,
    uptime_seconds: Option<u64>,
    peers_connected: Option<usize>,
    peers_away: Vec<u32>,
    instances_running: Option<u64>,
    results_cached: Option<u64>,
    latency_ms: Option<f64>,
}

/// A node's state as this client sees it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum NodeState {
    /// It answers.
    Up,
    /// It answers, and refuses what this client asks.
    Refuses,
    /// Nobody answers there.
    Down,
}

impl NodeState {
    const fn of(problem: &Problem) -> Self {
        match problem {
            Problem::Unreachable(_) | Problem::Silent(_) | Problem::Refused { code: Code::Cancelled, .. } => Self::Down,
            Problem::Refused { .. }
            | Problem::Unanswerable(_)
            | Problem::NotReady(_)
            | Problem::Denied { .. }
            | Problem::TurnedAway { .. }
            | Problem::OtherVersion(_)
            | Problem::KeyWithheld(_)
            | Problem::Unconfirmed(_)
            | Problem::FalseAnswer(_) => Self::Refuses,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Refuses => "refuses",
            Self::Down => "down",
        }
    }
}

#[derive(Serialize)]
struct DrawnRound {
    #[serde(flatten)]
    beacon: Beacon,
    #[serde(flatten)]
    provenance: Provenance,
}

/// `theta coin`.
pub(crate) fn coin(args: &CoinArgs, output: Output) -> Result<(), Failure> {
    if args.names.len() > 1 {
        return batch::coins(args, output);
    }
    let round = args.round.round()?;
    let asked = args.names.first().cloned().unwrap_or_default();
    if round.is_none() {
        check_coin_name(&asked)?;
    }
    let proof_target = args.proof.as_deref().map(|path| Target::choose(Some(path), None)).transpose()?;
    if let Some(target) = &proof_target {
        target.check_json(output.json())?;
        target.check_terminal("a proof")?;
    }
    let session = args.client.open_with(&args.approvals)?;
    let key = args.key.as_deref();
    let (key, name) = match &round {
        Some(round) => (session.look_up(key, |keyring| drand::key(keyring, key))?, round.message()),
        None => (session.look_up(key, |keyring| keyring.choose(key, Purpose::Coin))?, asked.clone().into_bytes()),
    };
    let key = key.asked();
    let answer = session.block_on(session.client().flip_coin(&key, name.into()))?;
    let provenance = Provenance::new(&key, &answer);
    provenance.warn_of_culprits();
    let (value, proof) = (&answer.result.value, &answer.result.proof);
    if let Some(target) = &proof_target {
        target.write(proof, false)?;
    }
    if let Some(round) = round {
        let report = DrawnRound { beacon: round.beacon(value, proof), provenance };
        return output.result(&report, |out| {
            writeln!(out, "randomness  {}", report.beacon.randomness)?;
            writeln!(out, "signature   {}", report.beacon.signature)
        });
    }
    let report = Coin { name: asked, value: hex::encode(value), proof: hex::encode(proof), provenance };
    output.result(&report, |out| writeln!(out, "{}", report.value))
}

/// Refuses an empty name and one that is too long.
pub(crate) fn check_coin_name(name: &str) -> Result<(), Failure> {
    if name.is_empty() {
        return Err(Failure::Usage(
            "a coin needs a name, such as 'lottery of 21 November'; this one is empty".to_owned(),
        ));
    }
    if name.len() > MAX_COIN_NAME_LEN {
        return Err(Failure::Usage(format!("a coin's name has at most {MAX_COIN_NAME_LEN} bytes")));
    }
    Ok(())
}

/// The bytes of a proof, from the file of this name or, if there is none, from hexadecimal digits.
fn read_proof(given: &Path) -> Result<Vec<u8>, Failure> {
    let digits = given.to_str().filter(|digits| !digits.is_empty() && !given.exists());
    if let Some(proof) = digits.and_then(|digits| hex::decode(digits).ok()) {
        return Ok(proof);
    }
    let proof = Source::open(given)?.read_all(16 << 20, "this is not the proof that was meant")?;
    let decoded = std::str::from_utf8(&proof).ok().and_then(|digits| hex::decode(digits.trim()).ok());
    Ok(decoded.unwrap_or(proof))
}

/// `theta verify-coin`.
pub(crate) fn verify_coin(args: &VerifyCoinArgs, output: Output) -> Result<(), Failure> {
    let key = match &args.beacon_key {
        Some(foreign) => CoinKey::Foreign(foreign),
        None => CoinKey::Ours(args.key.choose(Purpose::Coin)?),
    };
    let (name, message) = match args.round.round()? {
        Some(round) => {
            key.check_draws_rounds()?;
            (round.to_string(), round.message())
        }
        None => (args.name.clone().unwrap_or_default(), args.name.clone().unwrap_or_default().into_bytes()),
    };
    let value = hex::decode(args.value.trim()).map_err(|_| {
        Failure::Usage(format!(
            "{:?} is not a coin's value: give 64 hexadecimal digits, as theta coin prints them",
            args.value
        ))
    })?;
    let proof = read_proof(&args.proof)?;
    let verdict = match &key {
        CoinKey::Foreign(foreign) => foreign.verify(&message, &value, &proof).map(|()| (None, "")),
        CoinKey::Ours(ours) => {
            let found = args.key.fitting(ours, |key| key.public.verify(&message, &value, &proof));
            found.map(|found| (found.version, aside(found.state)))
        }
    };
    let key = key.name();
    let version = verdict.as_ref().ok().and_then(|(version, _)| *version).map(Version::get);
    let reason = verdict.as_ref().err().map(ToString::to_string);
    let report = CoinVerdict { valid: verdict.is_ok(), reason, key, version };
    output.result(&report, |out| match &verdict {
        Ok((version, aside)) => {
            let at = version.map(|version| format!("@{version}")).unwrap_or_default();
            writeln!(out, "{name}: this is its coin, by the key {key}{at}{aside}")
        }
        Err(_) => Ok(()),
    })?;
    verdict
        .map(drop)
        .map_err(|error| Failure::Failed(format!("this is not the coin {name:?} of the key {key}: {error}")))
}

/// `theta status`.
pub(crate) fn status(args: &StatusArgs, output: Output) -> Result<(), Failure> {
    let session = args.client.open()?;
    let client = session.client();
    let (statuses, (listed, _)) = session.block_on(async { tokio::join!(client.status(), client.list_keys()) });
    let group = session.client().group();
    let nodes: Vec<NodeView> = statuses.iter().map(NodeView::from).collect();
    let up = nodes.iter().filter(|node| node.up).count();
    let (threshold, name) = (group.threshold(), group.name().to_owned());
    let (stocks, quarantined) = (stocks::of(&listed), quarantines::of(&listed));
    let status =
        Status { group: name, threshold, up, culprits: culprits::of_statuses(&statuses), stocks, quarantined, nodes };
    output.result(&status, |out| {
        let mut table =
            Table::new(&["node", "address", "state", "peers", "running", "cached", "up for", "answers in"], &[4, 5]);
        for node in &status.nodes {
            table.row(node.cells());
        }
        table.write(out)?;
        for node in &status.nodes {
            if let Some(problem) = &node.problem {
                writeln!(out, "node {}: {problem}", node.node)?;
            }
        }
        stocks::write(&status.stocks, out)?;
        quarantines::write(&status.quarantined, out)?;
        for culprit in &status.culprits {
            writeln!(out, "{BAD}{culprit}{BAD:#}")?;
        }
        let style = if up >= usize::from(threshold) { GOOD } else { BAD };
        let total = status.nodes.len();
        // Those that refuse may serve others.
        let refusing = match status.nodes.iter().filter(|node| node.state == NodeState::Refuses).count() {
            0 => String::new(),
            many => format!(", and {many} there that refuse this client"),
        };
        writeln!(
            out,
            "{style}{up} of {total} nodes are up{style:#}{refusing}; it takes {threshold} to decrypt, sign or draw"
        )
    })?;
    if up < usize::from(threshold) { Err(too_few(&status)) } else { Ok(()) }
}

/// Too few nodes serve this client; the message distinguishes nodes that are down from nodes that refuse.
fn too_few(Status { threshold, up, nodes, .. }: &Status) -> Failure {
    let of_state = |state| nodes.iter().filter(move |node| node.state == state).map(|node| node.node);
    let refusing: Vec<u16> = of_state(NodeState::Refuses).collect();
    let all = nodes.len();
    if refusing.is_empty() {
        return Failure::NoAnswer(format!(
            "only {up} of {all} nodes are up and it takes {threshold}: start the others with theta node run"
        ));
    }
    let down: Vec<u16> = of_state(NodeState::Down).collect();
    let refuse = if refusing.len() == 1 { "is there and refuses" } else { "are there and refuse" };
    let text = format!(
        "{} {refuse} this client, as said above: those who keep the nodes can let it in, by policy.toml",
        connect::nodes(&refusing)
    );
    if up + refusing.len() >= usize::from(*threshold) {
        return Failure::Failed(text);
    }
    Failure::NoAnswer(format!("{text}; and {} cannot be reached, where it takes {threshold}", connect::nodes(&down)))
}

/// What a node that answers says is not as it should be.
fn troubles(response: &v1::GetStatusResponse) -> Option<String> {
    let away = response.host.as_ref().filter(|host| !host.away.is_empty());
    let away = away.map(|host| format!("its host at {} is away: {}", host.address, host.away));
    let troubles: Vec<String> = away.into_iter().chain(response.warnings.iter().cloned()).collect();
    (!troubles.is_empty()).then(|| exit::tidy(&troubles.join("; ")))
}

impl From<&NodeStatus> for NodeView {
    fn from(status: &NodeStatus) -> Self {
        let (node, address) = (status.node.get(), status.address.clone());
        match &status.status {
            Ok((response, latency)) => {
                let connected = |peer: &&v1::PeerStatus| peer.state() == v1::PeerState::Connected;
                Self {
                    node,
                    address,
                    up: true,
                    state: NodeState::Up,
                    problem: troubles(response),
                    version: Some(response.version.clone()),
                    uptime_seconds: Some(response.uptime_seconds),
                    peers_connected: Some(response.peers.iter().filter(connected).count()),
                    peers_away: response.peers.iter().filter(|peer| !connected(peer)).map(|peer| peer.node).collect(),
                    instances_running: Some(response.instances_running),
                    results_cached: Some(response.results_cached),
                    latency_ms: Some(latency.as_secs_f64() * 1e3),
                }
            }
            Err(problem) => Self {
                node,
                address,
                up: false,
                state: NodeState::of(&problem.problem),
                problem: Some(exit::tidy(&problem.problem.to_string())),
                version: None,
                uptime_seconds: None,
                peers_connected: None,
                peers_away: Vec::new(),
                instances_running: None,
                results_cached: None,
                latency_ms: None,
            },
        }
    }
}

impl NodeView {
    fn cells(&self) -> [String; 8] {
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let peers = match (self.peers_connected, self.peers_away.as_slice()) {
            (None, _) => "-".to_owned(),
            (Some(connected), []) => format!("all {connected}"),
            (Some(connected), away) => format!("{connected} of {}", connected + away.len()),
        };
        let latency = self.latency_ms.map(|milliseconds| units::human(Duration::from_secs_f64(milliseconds / 1e3)));
        [
            self.node.to_string(),
            self.address.clone(),
            self.state.word().to_owned(),
            peers,
            number(self.instances_running),
            number(self.results_cached),
            self.uptime_seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s")),
            latency.unwrap_or_else(|| "-".to_owned()),
        ]
    }
}
