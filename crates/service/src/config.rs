//! A node's own configuration, `node.toml`.
//!
//! Everything has a default but the node's number and its three listen addresses. Relative paths are relative to the
//! folder of the file that names them.

mod error;
mod keeping;
mod limits;
mod store;
mod transport;

use std::{
    fs, io,
    net::SocketAddr,
    num::{NonZeroU16, NonZeroUsize},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

pub use self::{
    error::ConfigError,
    keeping::{AuditConfig, BackupConfig, OrderConfig, TracesConfig},
    limits::LimitsConfig,
    store::{Sealing, StoreConfig, StoreOpenError},
    transport::{GossipConfig, HostConfig, TransportKind},
};
pub use theta_authority::{PolicyLoadError, load_policy};

/// A node's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// This node's number in the group file, 1 to 65,535.
    #[serde(deserialize_with = "error::node_number")]
    pub id: NonZeroU16,
    /// The group file, the same at every node. Default `group.toml`.
    #[serde(default = "paths::group")]
    pub group: PathBuf,
    /// This node's certificate, PEM, whose public key the group file pins; renewed in its place by the node itself. Default `node.crt`.
    #[serde(default = "paths::certificate")]
    pub certificate: PathBuf,
    /// The certificate's private key, PEM, readable by its owner alone. Default `node.key`.
    #[serde(default = "paths::private_key")]
    pub private_key: PathBuf,
    /// The policy file: who may ask this node for what. The node reads it again whenever it changes. Default `policy.toml`.
    #[serde(default = "paths::policy")]
    pub policy: PathBuf,
    /// What carries the messages between the nodes. Default `mesh`.
    #[serde(default)]
    pub transport: TransportKind,
    /// Threads for network and disk. Default 2.
    #[serde(default = "io_threads", deserialize_with = "error::threads")]
    pub io_threads: NonZeroUsize,
    /// Threads that do cryptography. Default: one for each processor.
    #[serde(default, deserialize_with = "error::threads_or_absent", skip_serializing_if = "Option::is_none")]
    pub cpu_threads: Option<NonZeroUsize>,
    /// The store of this node, and what opens it.
    #[serde(default)]
    pub store: StoreConfig,
    /// Backups of the running node. Absent: it makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupConfig>,
    /// The past of the audit log. Absent: it stays in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditConfig>,
    /// Where this node listens.
    pub listen: ListenConfig,
    /// The host platform, where the transport is `p2p-proxy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostConfig>,
    /// How the node gossips, where the transport is `gossip`. Absent: with every default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gossip: Option<GossipConfig>,
    /// Bounds on what this node takes on.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// What this node logs.
    #[serde(default)]
    pub log: LogConfig,
    /// The host that orders messages for all nodes, such as a blockchain node. Absent: the node has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderConfig>,
    /// Traces of requests. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<TracesConfig>,
}

/// The addresses that a node listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenConfig {
    /// For the other nodes of the group, where they connect to this one.
    #[serde(deserialize_with = "error::address")]
    pub peer: SocketAddr,
    /// For clients: gRPC over mutually authenticated TLS.
    #[serde(deserialize_with = "error::address")]
    pub api: SocketAddr,
    /// For the monitoring system: `/metrics`, `/healthz` and `/readyz` over plain HTTP. Loopback addresses only, because
    /// nothing protects it. Absent: not served.
    #[serde(default, deserialize_with = "error::loopback_or_absent", skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
}

/// What a node logs, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`) or a filter such as `info,theta_network=debug`. Default `info`.
    pub level: String,
    /// `text` for people, `json` for machines. Default `text`.
    pub format: LogFormat,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line an event.
    #[default]
    Text,
    /// One JSON object an event.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

impl NodeConfig {
    /// A configuration with every default: files beside `node.toml`, bounds as in [`LimitsConfig::default`].
    #[must_use]
    pub fn new(id: NonZeroU16, listen: ListenConfig) -> Self {
        Self {
            id,
            group: paths::group(),
            certificate: paths::certificate(),
            private_key: paths::private_key(),
            policy: paths::policy(),
            transport: TransportKind::default(),
            host: None,
            gossip: None,
            store: StoreConfig::default(),
            backup: None,
            audit: None,
            io_threads: io_threads(),
            cpu_threads: None,
            listen,
            limits: LimitsConfig::default(),
            log: LogConfig::default(),
            order: None,
            traces: None,
        }
    }

    /// Reads a `node.toml` and resolves its relative paths against its folder.
    ///
    /// # Errors
    /// [`ConfigError`] says in one line what is wrong, in which file and line, and what would be right.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|reason| ConfigError::Read { file: path.to_owned(), reason: reason.to_string() })?;
        let mut config = Self::parse(&text, path)?;
        if let Some(folder) = path.parent() {
            config.resolve(folder);
        }
        Ok(config)
    }

    /// Parses the text of a `node.toml`; `file` is its name in errors. Relative paths are not resolved.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::from_toml(&error, text, file))?;
        match config.misfit() {
            Some(problem) => Err(ConfigError::at(&["transport", "[host]", "[gossip]"], text, file, problem)),
            None => Ok(config),
        }
    }

    /// What does not fit the transport.
    const fn misfit(&self) -> Option<&'static str> {
        match (self.transport, &self.host, &self.gossip) {
            (TransportKind::P2pProxy, None, _) => {
                Some("transport = \"p2p-proxy\" takes a section [host] with address and fingerprint")
            }
            (TransportKind::Mesh | TransportKind::Gossip, Some(_), _) => {
                Some("a section [host] takes transport = \"p2p-proxy\" at the beginning of the file")
            }
            (TransportKind::Mesh | TransportKind::P2pProxy, _, Some(_)) => {
                Some("a section [gossip] takes transport = \"gossip\" at the beginning of the file")
            }
            (transport, ..) => transport.missing(),
        }
    }

    /// A Tokio runtime with this configuration's [`io_threads`](Self::io_threads), in which to start the node.
    ///
    /// # Errors
    /// The system's error, if it gives no threads.
    pub fn runtime(&self) -> io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.io_threads.get())
            .thread_name("theta-io")
            .enable_all()
            .build()
    }

    /// Makes relative paths relative to `folder`.
    pub fn resolve(&mut self, folder: &Path) {
        let files =
            [&mut self.group, &mut self.certificate, &mut self.private_key, &mut self.policy, &mut self.store.path];
        let backup = self.backup.as_mut().and_then(|backup| backup.sealing.path_mut());
        let audit = self.audit.as_mut().map(|audit| &mut audit.folder);
        for path in files.into_iter().chain(self.store.sealing.path_mut()).chain(backup).chain(audit) {
            if path.is_relative() {
                *path = folder.join(&*path);
            }
        }
    }

    /// The text of a `node.toml` with this configuration and a description of every setting.
    ///
    /// # Errors
    /// A path is not UTF-8.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut text =
            String::from("# A node of a threshold group. Relative paths are relative to this file's folder.\n\n");
        for line in toml::to_string(self)?.lines() {
            let name = line.split(" =").next().unwrap_or_default();
            if let Some((_, description)) = DESCRIPTIONS.iter().find(|(setting, _)| *setting == name) {
                text.extend(["# ", description, "\n"]);
            }
            text.extend([line, "\n"]);
        }
        Ok(text)
    }
}

/// The descriptions of settings in `node.toml`.
const DESCRIPTIONS: &[(&str, &str)] = &[
    ("id", "This node's number in the group file."),
    ("group", "The group file, the same at every node."),
    ("certificate", "This node's certificate; the node renews it by itself. The group file pins its public key."),
    ("private_key", "Its private key, readable by its owner alone."),
    ("policy", "Who may ask this node for what; read again whenever it changes. Without one everything is refused."),
    ("[store]", "What this node keeps: its keys, its ceremonies, what it signed, its audit log."),
    ("path", "The store's file."),
    (
        "[store.sealing]",
        "What opens the store, one of: file = \"store.key\", passphrase_file = \"FILE\", env = \"VARIABLE\", credential = \"NAME\".",
    ),
    ("file", "A key file: 32 random bytes or their 64 hexadecimal digits, readable by its owner alone."),
    ("passphrase_file", "A file with a passphrase, readable by its owner alone."),
    ("env", "The environment variable with the passphrase."),
    ("credential", "The name of a credential that systemd hands over."),
    ("[backup.sealing]", "What seals backups of the running node, one of the same ways: theta keys backup --node."),
    ("[audit]", "The past of the audit log goes into files."),
    ("keep", "So many of the latest records stay in the store, and up to a quarter more."),
    ("folder", "The folder of these files; nothing is ever removed from it."),
    (
        "transport",
        "What carries the messages between the nodes, the same at all: \"mesh\", \"p2p-proxy\" with a section [host], or \"gossip\".",
    ),
    ("[host]", "The host platform beside this node, which carries its messages."),
    ("address", "Where the host listens for this node."),
    ("fingerprint", "The SHA-256 of the host's public key: another host gets nothing."),
    (
        "frame_bytes",
        "The longest frame that this node makes; the hosts have to carry it. With gossip the same at all nodes.",
    ),
    ("[gossip]", "How this node gossips."),
    ("neighbours", "The numbers of the nodes to which it connects; none: a few, drawn from all."),
    ("io_threads", "Threads that move bytes."),
    ("cpu_threads", "Threads that do cryptography; one for each processor if absent."),
    ("peer", "For the other nodes."),
    ("api", "For clients: gRPC over mutually authenticated TLS."),
    ("metrics", "For monitoring: /metrics, /healthz, /readyz over plain HTTP, loopback only; absent: not served."),
    ("max_in_flight", "Clients' API requests being answered at one time; more are refused."),
    ("max_in_flight_bytes", "Bytes of these requests, and of answers that have not been taken."),
    ("max_client_requests", "Of these requests, those of one client."),
    ("max_client_bytes", "Of these bytes, those of one client."),
    ("reserved_requests", "Requests that each client may have whatever others do."),
    ("reserved_bytes", "Bytes of requests and answers that each client may have whatever others do."),
    ("max_stranger_requests", "Requests of all callers together whom neither certificate nor token makes known."),
    ("max_stranger_bytes", "Bytes of these requests and of their answers."),
    ("body_seconds", "Time for the body of a request."),
    ("body_bytes_per_second", "What a body must bring in each second that it takes longer."),
    ("response_seconds", "How long an answer waits for its receiver to take any of it."),
    ("max_message_bytes", "Bytes of one API message."),
    ("max_connections", "API connections at one time."),
    ("max_client_connections", "Of these, those of one client; its oldest makes room for a new one."),
    ("max_stranger_connections", "Of these, those of strangers; the oldest makes room for a new one."),
    ("max_connection_streams", "Requests at one time on one API connection."),
    ("idle_seconds", "How long a client's connection stays without a request."),
    ("stranger_idle_seconds", "How long a stranger's connection stays without a request."),
    ("max_handshakes", "New API connections in their TLS handshake at one time; the oldest makes room for a new one."),
    ("handshake_seconds", "Time for a new API connection's TLS handshake."),
    ("max_instances", "Instances running at one time."),
    ("instance_seconds", "How long an instance waits for shares before it fails."),
    ("max_results", "Results kept for repeated requests."),
    ("max_result_bytes", "Bytes of the results that are kept."),
    ("result_seconds", "How long a result is kept."),
    (
        "nonces_per_peer",
        "Pairs of FROST nonces made in advance for each key and other node, and presignatures for each key of ECDSA below which more are made; 0: none, and signatures take more rounds.",
    ),
    (
        "burn_nonces",
        "Put on record which FROST nonces and ECDSA presignatures are used up before they sign: for nodes whose memory may be set back without their disk.",
    ),
    ("level", "error, warn, info, debug, trace, or a filter such as info,theta_network=debug."),
    ("format", "text for people, json for machines."),
    ("[order]", "The platform beside this node that orders messages for all: spec/chain.md."),
    ("client", "What the policy calls it; nobody else brings the order."),
    ("[traces]", "What each node did for a request, for an OpenTelemetry collector."),
    ("collector", "The collector on this machine: OTLP over gRPC."),
    ("one_in", "One in so many requests is traced, at all nodes the same ones."),
    ("[limits]", "Bounds on what this node takes on."),
    ("[listen]", "Where this node listens."),
];

fn io_threads() -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(1)
}

/// The default names of a node's files, as `theta group init` writes them.
mod paths {
    use std::path::PathBuf;

    pub(super) fn group() -> PathBuf {
        "group.toml".into()
    }
    pub(super) fn certificate() -> PathBuf {
        "node.crt".into()
    }
    pub(super) fn private_key() -> PathBuf {
        "node.key".into()
    }
    pub(super) fn policy() -> PathBuf {
        "policy.toml".into()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const MINIMAL: &str = "id = 3\n[listen]\npeer = \"127.0.0.1:7003\"\napi = \"127.0.0.1:7103\"\n";

    fn failure(text: &str) -> String {
        NodeConfig::parse(text, Path::new("node.toml")).unwrap_err().to_string()
    }

    #[test]
    fn the_minimum_takes_every_default() {
        let config = NodeConfig::parse(MINIMAL, Path::new("node.toml")).unwrap();
        assert_eq!(config, NodeConfig::new(NonZeroU16::new(3).unwrap(), config.listen.clone()));
        assert_eq!(config.limits.max_message_bytes.get(), 32 << 20);
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut config = NodeConfig::parse(MINIMAL, Path::new("node.toml")).unwrap();
        config.cpu_threads = NonZeroUsize::new(7);
        config.listen.metrics = Some("127.0.0.1:9100".parse().unwrap());
        config.log.format = LogFormat::Json;
        config.limits.max_in_flight = NonZeroUsize::new(5).unwrap();
        config.transport = TransportKind::P2pProxy;
        config.host = Some(HostConfig::new(&"host.example:7300".parse().unwrap(), [7; 32].into()));
        config.order = Some(OrderConfig { client: "validator".parse().unwrap() });
        config.traces =
            Some(TracesConfig { collector: "127.0.0.1:4317".parse().unwrap(), one_in: NonZeroU32::new(100).unwrap() });
        let text = config.to_toml().unwrap();
        assert_eq!(NodeConfig::parse(&text, Path::new("x")).unwrap(), config);
        for (line, next) in text.lines().zip(text.lines().skip(1)) {
            assert!(next.starts_with('#') || !next.contains(" =") || line.starts_with("# "), "{next} is not described");
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("node.toml");
        fs::write(&file, format!("certificate = \"/elsewhere/node.crt\"\n{MINIMAL}")).unwrap();
        let config = NodeConfig::load(&file).unwrap();
        assert_eq!(config.group, folder.path().join("group.toml"));
        assert_eq!(config.certificate, Path::new("/elsewhere/node.crt"));
        assert_eq!(config.policy, folder.path().join("policy.toml"));
        assert_eq!(config.store.path, folder.path().join("theta.redb"));
        assert_eq!(config.store.sealing, Sealing::File(folder.path().join("store.key")));
    }

    #[test]
    fn every_way_to_seal_reads_and_writes() {
        for (text, sealing) in [
            ("file = \"a\"", Sealing::File("a".into())),
            ("passphrase_file = \"b\"", Sealing::PassphraseFile("b".into())),
            ("env = \"C\"", Sealing::Env("C".to_owned())),
            ("credential = \"d\"", Sealing::Credential("d".to_owned())),
        ] {
            let config =
                NodeConfig::parse(&format!("{MINIMAL}[store]\nsealing = {{ {text} }}\n"), Path::new("x")).unwrap();
            assert_eq!(config.store.sealing, sealing);
            assert_eq!(NodeConfig::parse(&config.to_toml().unwrap(), Path::new("x")).unwrap(), config);
        }
        assert!(failure(&format!("{MINIMAL}[store]\nsealing = {{ pin = \"1234\" }}\n")).contains("node.toml:6"));
    }

    #[test]
    fn errors_are_one_line_with_place_and_remedy() {
        let cases = [
            ("id = 3\n[lisen]\n", "node.toml:2: unknown setting `lisen`: did you mean `listen`?"),
            (
                "id = 0\n[listen]\npeer = \"127.0.0.1:1\"\napi = \"127.0.0.1:2\"\n",
                "node.toml:1: a node's number is 1 to 65535, as in the group file",
            ),
            (
                "id = 1\n[listen]\npeer = \"localhost\"\napi = \"127.0.0.1:2\"\n",
                "node.toml:3: \"localhost\" is not an address with a port: write for example \"127.0.0.1:7001\"",
            ),
            (
                &format!("{MINIMAL}[traces]\ncollector = \"192.0.2.1:4317\"\n"),
                "node.toml:6: 192.0.2.1:4317 is not a loopback address: traces are not protected, write for example \
                 \"127.0.0.1:4317\"",
            ),
            (
                "id = 1\n[listen]\npeer = \"127.0.0.1:1\"\napi = \"127.0.0.1:2\"\nmetrics = \"0.0.0.0:3\"\n",
                "node.toml:5: 0.0.0.0:3 is not a loopback address: metrics are not protected, write for example \
                 \"127.0.0.1:7201\"",
            ),
            ("id = 1\nio_threads = 0\n", "node.toml:2: must be at least 1"),
            (
                &format!("transport = \"p2p-proxy\"\n{MINIMAL}"),
                "node.toml:1: transport = \"p2p-proxy\" takes a section [host] with address and fingerprint",
            ),
            (
                &format!("{MINIMAL}[host]\naddress = \"h:1\"\nfingerprint = \"{}\"\n", "00".repeat(32)),
                "node.toml:5: a section [host] takes transport = \"p2p-proxy\" at the beginning of the file",
            ),
            (
                &format!("{MINIMAL}[gossip]\nneighbours = [2]\n"),
                "node.toml:5: a section [gossip] takes transport = \"gossip\" at the beginning of the file",
            ),
            (
                &format!("{MINIMAL}[host]\naddress = \"nowhere\"\n"),
                "node.toml:6: \"nowhere\" is no address: write for example \"localhost:7300\"",
            ),
            (
                "id = 1\n[limits]\nmax_in_flght = 3\n",
                "node.toml:3: unknown setting `max_in_flght`: did you mean `max_in_flight`?",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(failure(text), expected);
        }
        for broken in ["id = ", "id = 1\n", "", "id = \"one\"\n", "\u{0}"] {
            let message = failure(broken);
            assert!(!message.contains('\n') && message.starts_with("node.toml:"), "{message:?}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = NodeConfig::load(Path::new("/nowhere/node.toml")).unwrap_err().to_string();
        assert!(message.starts_with("cannot read /nowhere/node.toml: "), "{message}");
    }
}
