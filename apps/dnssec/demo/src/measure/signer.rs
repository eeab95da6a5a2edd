//! Who signs: a group, SoftHSM, or Knot itself.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use theta::{exit::Failure, group::plan::Plan};
use theta_cluster::{Cluster, Lifetime, cpu_time};
use theta_dnssec::{
    agent::{Agent, AgentError},
    look_ahead::{Service, serve_ahead},
};
use theta_knot::places::Places;

use super::{
    MeasureArgs,
    agents::{Agents, permit},
    grid::{Algorithm, Asking, GroupSize},
    point::Point,
    stock,
};
use crate::{
    agent::{COPY, KEYS, ZONE, sources},
    module::{POOL, configure},
    permission::{NAME_SERVERS_CLIENT, new_client},
};

/// The tool of SoftHSM.
pub(super) const SOFTHSM: &str = "softhsm2-util";
/// Its module, below folders of libraries.
const SOFTHSM_MODULE: &str = "softhsm/libsofthsm2.so";
const PIN: &str = "1234";
/// Where the module asks what will be signed next, in the server's folder.
const AHEAD: &str = "ahead.sock";
/// How long nodes may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A group with keys that Knot takes from its pool.
pub(super) struct GroupSigner {
    group: Cluster,
    dir: PathBuf,
    size: GroupSize,
    program: PathBuf,
    module: Option<PathBuf>,
    /// Whether policies know the name server, which gets what agents consent to.
    has_agents: bool,
}

impl GroupSigner {
    /// Makes it in a directory that must not exist, and starts it.
    pub(super) async fn start(
        program: &Path,
        dir: &Path,
        size: GroupSize,
        MeasureArgs { algorithms, module, presignatures, agents, .. }: &MeasureArgs,
    ) -> Result<Self, Failure> {
        fs::create_dir(dir).map_err(|error| Failure::writing(dir, &error))?;
        let mut keys = Vec::new();
        // Knot takes one for the zone's keys, and one for everything else.
        for (algorithm, number) in algorithms.iter().flat_map(|algorithm| [(algorithm, 1), (algorithm, 2)]) {
            let suite = algorithm.suite();
            keys.push(format!("{POOL}-{suite}-{number}={suite}").parse().map_err(Failure::internal)?);
        }
        let plan = Plan::new(size.n, size.k, keys)?;
        let mut group = Cluster::create(program.to_owned(), &dir.join("group"), &plan, Lifetime::Tied)?;
        if let Some(count) = presignatures {
            stock::keep(&group, *count)?;
        }
        let has_agents = agents.contains(&Asking::On);
        if has_agents {
            permit(&group, dir, &new_client(|words| group.theta(dir, words))?)?;
        }
        group.start_all()?;
        group.listening(PATIENCE).await?;
        let (program, dir) = (program.to_owned(), dir.to_owned());
        Ok(Self { group, dir, size, program, module: module.clone(), has_agents })
    }

    /// CPU of all nodes until now.
    fn cpu(&self) -> Duration {
        self.group.pids().iter().filter_map(|(_, pid)| cpu_time(*pid)).sum()
    }

    fn theta(&self, words: &[&str]) -> Result<String, Failure> {
        self.group.theta(&self.dir, words)
    }

    fn config(&self, Point { folder, is_ahead, asks, .. }: &Point<'_>, algorithm: &str) -> Result<String, Failure> {
        // As they are after a while in which nobody signs.
        stock::await_full(|| self.theta(&["status", "--json"]))?;
        let client = if *asks { self.dir.join(NAME_SERVERS_CLIENT) } else { self.group.client_dir() };
        // Beside the configuration.
        let more: &[&str] = if *is_ahead { &["--look-ahead", AHEAD] } else { &[] };
        configure(
            |words| self.theta(words),
            (&client.to_string_lossy(), self.module.as_deref()),
            folder,
            algorithm,
            more,
        )
    }

    /// The zone's keys, as agents read them.
    fn keys(&self, algorithm: Algorithm) -> Result<String, Failure> {
        let export = |number: u16| {
            let name = format!("{POOL}-{}-{number}", algorithm.suite());
            self.theta(&["keys", "export", &name, "--format", "dnskey"])
        };
        [1, 2].into_iter().map(export).collect()
    }

    /// Tells the module what will be signed next, by a copy of the zone in the server's folder.
    fn look_ahead(&self, folder: &Path, algorithm: Algorithm, records: &str) -> Result<Service, Failure> {
        let keys = self.keys(algorithm)?;
        for (name, text) in [(COPY, records), (KEYS, keys.as_str())] {
            let file = folder.join(name);
            fs::write(&file, text).map_err(|error| Failure::writing(&file, &error))?;
        }
        let failed = |error: AgentError| Failure::Failed(error.to_string());
        let agent = Agent::open(sources(folder)).map_err(failed)?;
        serve_ahead(&agent, &folder.join(AHEAD)).map_err(failed)
    }
}

/// Who signs.
pub(super) enum Signer {
    Group(GroupSigner),
    Softhsm,
    Files,
}

impl Signer {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Group(group) => group.size.name(),
            Self::Softhsm => "SoftHSM".to_owned(),
            Self::Files => "files".to_owned(),
        }
    }

    /// CPU of a node until now, on average over nodes.
    pub(super) fn node_cpu(&self) -> Option<Duration> {
        match self {
            Self::Group(group) => Some(group.cpu() / u32::from(group.size.n)),
            Self::Softhsm | Self::Files => None,
        }
    }

    /// What `knot.conf` has about keys, policy and zone; the files that it takes are made in the point's folder.
    pub(super) fn config(&self, point: &Point<'_>, algorithm: &str) -> Result<String, Failure> {
        match self {
            Self::Group(group) => group.config(point, algorithm),
            Self::Softhsm => softhsm(point.places, point.folder, algorithm),
            Self::Files => Ok(plain(algorithm, "")),
        }
    }

    /// Whether the module can be told what will be signed next: a group's, of algorithms whose signers send digests.
    pub(super) const fn can_look_ahead(&self, algorithm: Algorithm) -> bool {
        matches!(self, Self::Group(_)) && algorithm.sends_digests()
    }

    /// Whether agents can look at what is signed: a group's.
    pub(super) const fn has_agents(&self) -> bool {
        matches!(self, Self::Group(group) if group.has_agents)
    }

    /// Has them look, with these copies of the zone, until what is returned is dropped.
    pub(super) fn agents(&self, algorithm: Algorithm, records: &str) -> Result<Option<Agents>, Failure> {
        let Self::Group(group) = self else { return Ok(None) };
        let keys = group.keys(algorithm)?;
        Agents::start(&group.program, (&group.dir, group.size.n), records, &keys).map(Some)
    }

    /// Tells it, until what is returned is dropped.
    pub(super) fn look_ahead(
        &self,
        folder: &Path,
        algorithm: Algorithm,
        records: &str,
    ) -> Result<Option<Service>, Failure> {
        match self {
            Self::Group(group) => group.look_ahead(folder, algorithm, records).map(Some),
            Self::Softhsm | Self::Files => Ok(None),
        }
    }
}

/// A policy with the times of the group's, and a zone with it.
fn plain(algorithm: &str, keystore: &str) -> String {
    format!(
        "policy:\n  - id: measured\n    algorithm: {algorithm}\n    dnskey-ttl: 1\n    zone-max-ttl: 1\n    propagation-delay: 1\n{keystore}\
         zone:\n  - domain: {ZONE}\n    dnssec-signing: on\n    dnssec-policy: measured\n"
    )
}

/// A new token in the server's folder.
fn softhsm(places: &Places, folder: &Path, algorithm: &str) -> Result<String, Failure> {
    let missing = || {
        Failure::Failed(format!("SoftHSM's module ({SOFTHSM_MODULE}) is missing: install Debian's package softhsm2"))
    };
    let folders = places
        .libraries()
        .into_iter()
        .chain(["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"].map(PathBuf::from));
    let module =
        folders.map(|folder| folder.join(SOFTHSM_MODULE)).find(|module| module.is_file()).ok_or_else(missing)?;
    let tokens = folder.join("tokens");
    fs::create_dir(&tokens).map_err(|error| Failure::writing(&tokens, &error))?;
    let file = folder.join("softhsm2.conf");
    let text = format!("directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n", tokens.display());
    fs::write(&file, text).map_err(|error| Failure::writing(&file, &error))?;
    let mut tool = places.command(SOFTHSM);
    tool.env("SOFTHSM2_CONF", &file).arg("--module").arg(&module);
    tool.args(["--init-token", "--free", "--label", "measured", "--pin", PIN, "--so-pin", PIN]);
    let output = tool.output().map_err(|error| Failure::Failed(format!("{SOFTHSM} does not start: {error}")))?;
    if !output.status.success() {
        return Err(Failure::Failed(format!("{SOFTHSM}: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let keystore = format!(
        "keystore:\n  - id: softhsm\n    backend: pkcs11\n    config: \"pkcs11:token=measured;pin-value={PIN} {}\"\n",
        module.display()
    );
    Ok(format!("{keystore}{}", plain(algorithm, "    keystore: softhsm\n")))
}
