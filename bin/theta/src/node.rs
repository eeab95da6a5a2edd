//! `theta node`: makes a node, takes it into a group, and runs it until it is told to stop.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    thread,
    time::Duration,
};

use clap::{Args, Subcommand, ValueEnum};
use theta_service::{
    Node, NodeConfig, StartError,
    config::{LogConfig, LogFormat, TracesConfig},
};
use theta_telemetry::{Exporter, Origin, StageLayer};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time,
};
use tracing_subscriber::{
    filter::{LevelFilter, ParseError, Targets},
    layer::{Layer, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::{
    exit::Failure,
    founding,
    output::{self, Output},
};

/// How long a node that stops waits for the collector to take its last traces.
const LAST_TRACES: Duration = Duration::from_secs(2);

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Make the keys of a new node, here, and its public card
    Init(Box<founding::InitArgs>),
    /// Write a node's card anew, when the old one has ended, or the node moves
    Card(founding::CardArgs),
    /// Make a node one of the group that was put together with its card, or has taken it in since
    Join(Box<founding::JoinArgs>),
    /// Come back after the machine lost its store, or everything: a new one in its place, in one command
    Rejoin(Box<founding::RejoinArgs>),
    /// Run a node until SIGTERM or Ctrl-C
    Run(RunArgs),
}

/// Options of `theta node run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node run --dir theta-group/node-1
  theta node run --config /etc/theta/node.toml --log-level info,theta_network=debug

The node says on standard error when it is ready. It reads its policy file again when that changes, and on SIGHUP. On SIGTERM or Ctrl-C it refuses new requests, \
finishes those it has (5 s at most) and exits with 0. It exits with 2 if its configuration, certificate or keys are not \
right, with 1 if it cannot listen on its addresses.")]
pub struct RunArgs {
    #[command(flatten)]
    config: ConfigPath,
    /// What to log: error, warn, info, debug, trace, or a filter [default: as in node.toml]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How to log [default: as in node.toml; json with --json]
    #[arg(long, value_enum)]
    log_format: Option<Format>,
    /// Stop when standard input ends, too: for programs that start nodes and must not leave them behind
    #[arg(long)]
    stop_on_eof: bool,
}

/// The configuration file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ConfigPath {
    /// The node's configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The node's directory, with node.toml in it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A readable line for each event
    Text,
    /// A JSON object for each event
    Json,
}

impl NodeCommand {
    /// Runs the command.
    pub fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Init(args) => founding::init(&args, output),
            Self::Card(args) => founding::card(&args, output),
            Self::Join(args) => founding::join(&args, output),
            Self::Rejoin(args) => founding::rejoin(*args, output),
            Self::Run(args) => serve(&args, output.json(), Node::start),
        }
    }
}

impl RunArgs {
    fn load(&self, json: bool) -> Result<NodeConfig, Failure> {
        let file = match (&self.config.config, &self.config.dir) {
            (Some(file), _) => file.clone(),
            (None, dir) => dir.clone().unwrap_or_default().join("node.toml"),
        };
        if self.config.dir.is_some() && !file.is_file() {
            return Err(Failure::Usage(format!(
                "cannot read {}: no such file; --dir takes the directory of one node, such as theta-group/node-1",
                file.display()
            )));
        }
        founding::refuse_unjoined(&file)?;
        let mut config = NodeConfig::load(&file).map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(level) = &self.log_level {
            config.log.level.clone_from(level);
        }
        match self.log_format {
            Some(Format::Json) => config.log.format = LogFormat::Json,
            Some(Format::Text) => config.log.format = LogFormat::Text,
            None if json => config.log.format = LogFormat::Json,
            None => {}
        }
        Ok(config)
    }
}

/// Runs a node, started by `start`, until it has to stop.
pub fn serve(
    args: &RunArgs,
    json: bool,
    start: impl AsyncFnOnce(NodeConfig) -> Result<Node, StartError>,
) -> Result<(), Failure> {
    let config = args.load(json)?;
    let (stages, exporter) = config.traces.as_ref().map(|traces| trace(&config, traces)).unzip();
    log(&config.log, stages)?;
    let announce = config.log.format == LogFormat::Text;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.io_threads.get())
        .enable_all()
        .build()
        .map_err(|error| Failure::Internal(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        let mut told = Box::pin(told_to_stop(args.stop_on_eof)?);
        let mut hangup = watch(SignalKind::hangup())?;
        let mut node = start(config).await?;
        let (last, ended) = oneshot::channel::<()>();
        let mut exporting = exporter.map(|exporter| tokio::spawn(exporter.run(async { drop(ended.await) })));
        if announce {
            let (id, api) = (node.id(), node.api_address());
            let nodes = match node.host() {
                Some(host) => format!("nodes through the host at {}", host.address),
                None => format!("nodes at {}", node.peer_address()),
            };
            output::note(format_args!("node {id} is ready: clients at {api}, {nodes}; Ctrl-C stops it"));
        }
        loop {
            tokio::select! {
                reason = &mut told => {
                    tracing::info!(reason, "stopping");
                    node.shutdown().await;
                    drop(last);
                    if let Some(exporting) = exporting.take() {
                        // A collector that does not answer keeps no node from stopping.
                        let _ = time::timeout(LAST_TRACES, exporting).await;
                    }
                    return Ok(());
                }
                Some(()) = hangup.recv() => match node.reload_policy().await {
                    Ok(reload) => tracing::info!(changed = reload.changed, "the policy file was read again"),
                    Err(error) => tracing::error!(%error, "the policy stays as it was"),
                },
                () = node.wait() => return Err(Failure::internal("the API server stopped by itself")),
            }
        }
    })
}

fn watch(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::Internal(format!("cannot watch for signals: {error}")))
}

/// Resolves when the node has to stop, to the reason. Signals are watched from this call on.
fn told_to_stop(stop_on_eof: bool) -> Result<impl Future<Output = &'static str>, Failure> {
    let (mut terminate, mut interrupt) = (watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?);
    let (ended, end_of_input) = oneshot::channel();
    if stop_on_eof {
        thread::spawn(move || {
            // An error ends the input as well.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = ended.send(());
        });
    }
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            Ok(()) = end_of_input => "end of standard input",
        }
    })
}

/// The targets of gossipsub's log lines begin so.
const GOSSIP_LIBRARY: &str = "libp2p_gossipsub";

/// Parses a filter by level and target. Each of its parts must name a level; one without is a mistyped level. A filter by the fields of
/// spans as well would bring regular expressions into every node.
fn log_filter(level: &str) -> Result<Targets, Failure> {
    let refused = |reason: &str| {
        Failure::Usage(format!(
            "log level {level:?}: {reason}; write error, warn, info, debug, trace, or a filter such as \
             info,theta_network=debug"
        ))
    };
    for part in level.split(',') {
        let word = part.rsplit_once('=').map_or(part, |(_, word)| word);
        if word.is_empty() || word.parse::<LevelFilter>().is_err() {
            return Err(refused(&format!("{word:?} is not a level")));
        }
    }
    let filter: Targets = level.parse().map_err(|error: ParseError| refused(&error.to_string()))?;
    // The gossip library warns of each message that a neighbour has bent, before anybody counts them. What matters of it is told, at a
    // bounded rate, by the crate above.
    let named = level.split(',').any(|part| part.starts_with(GOSSIP_LIBRARY));
    Ok(if named { filter } else { filter.with_target(GOSSIP_LIBRARY, LevelFilter::ERROR) })
}

/// The two ends of a node's traces.
fn trace(node: &NodeConfig, traces: &TracesConfig) -> (StageLayer, Exporter) {
    let TracesConfig { collector, one_in } = *traces;
    theta_telemetry::traces(Origin { node: node.id.get(), collector, one_in })
}

/// Writes the log, and passes the stages of requests on to the traces, if there are any, whatever level the log has.
fn log(config: &LogConfig, stages: Option<StageLayer>) -> Result<(), Failure> {
    let filter = log_filter(&config.level)?;
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colour);
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let registry = tracing_subscriber::registry();
    let installed = match stages {
        None => registry.with(lines).with(filter).try_init(),
        Some(stages) => {
            let stages = stages.with_filter(StageLayer::filter());
            registry.with(lines.with_filter(filter)).with(stages).try_init()
        }
    };
    installed.map_err(|error| Failure::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_level_is_refused() {
        for good in ["info", "WARN", "off", "info,theta_network=debug"] {
            assert!(log_filter(good).is_ok(), "{good}");
        }
        for bad in ["wran", "", "info,", "info,theta_network=", "theta_network=loud", "a=b=c"] {
            let failure = log_filter(bad).unwrap_err();
            assert!(failure.code() == 2 && failure.to_string().contains("write error, warn"), "{failure}");
        }
    }
}
