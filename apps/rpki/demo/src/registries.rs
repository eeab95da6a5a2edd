//! Five registries. Each has a node of the group, its own data, the statements that members have sent it, and an agent that lets the node sign what
//! follows from these.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use theta::{
    exit::{Failure, reason},
    group::plan::Plan,
};
use theta_client::blocking::Client;
use theta_cluster::{Cluster, Lifetime};
use theta_names::WallTime;
use theta_rpki::{
    registry::{Pool, Registry},
    statements::Stated,
};
use theta_rpki_issuer::{
    hands::{Hands, Unsigned, Wanted},
    issue::{Issuer, Report},
    output::Output,
    state::{State, StateFile},
};
use theta_rpki_publication::{
    disk::Files,
    publication::{Settings, publish},
};
use tokio::time::sleep;

use crate::{
    AGENT,
    agent::{DATA, POOL, SOCKET, STATEMENTS, STORE, sources},
    member::{MEMBER, Member, RPKI, is_address},
};

/// How many there are.
pub(crate) const REGISTRIES: u16 = 5;
/// How many of them sign.
pub(crate) const THRESHOLD: u16 = 3;
/// The keys: of the trust anchor, of the member's authority, and of objects.
const ANCHOR: &str = "rpki-ta";
const AUTHORITY: &str = "rpki-acme";
pub(crate) const OBJECTS: u16 = 7;
/// How many objects are signed in one call.
const AT_ONCE: usize = 8;

/// How long processes may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Agents look at their files once a second, and times of objects are in seconds.
const SEEN: Duration = Duration::from_millis(2_100);

/// The registries' processes. Dropping it kills them; they end with this process, too.
pub(crate) struct Registries {
    program: PathBuf,
    dir: PathBuf,
    group: Cluster,
    agents: Vec<Child>,
    /// How many keys of objects there are.
    objects: u16,
    /// How many signatures the issuer has got.
    signatures: AtomicUsize,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

impl Registries {
    /// Makes a group with its keys, so many of them for objects, and the registries' directories, in a directory that must not exist. Starts nothing yet.
    pub(crate) fn create(program: &Path, dir: &Path, objects: u16) -> Result<Self, Failure> {
        fs::create_dir(dir).map_err(|error| Failure::writing(dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| Failure::reading(dir, &error))?;
        let names = [ANCHOR, AUTHORITY].map(str::to_owned).into_iter().chain((1..=objects).map(object));
        let keys = names.map(|name| format!("{name}=sh00-pkcs1-sha256").parse().map_err(Failure::Usage));
        let plan = Plan::new(REGISTRIES, THRESHOLD, keys.collect::<Result<_, _>>()?)?;
        let group = Cluster::create(program.to_owned(), &dir.join("group"), &plan, Lifetime::Tied)?;
        let (agents, signatures) = (Vec::new(), AtomicUsize::default());
        let registries = Self { program: program.to_owned(), dir, group, agents, objects, signatures };
        for number in 1..=REGISTRIES {
            let own = registries.registry(number).join(STATEMENTS).join(MEMBER);
            fs::create_dir_all(&own).map_err(|error| Failure::writing(&own, &error))?;
            registries.write_policy(number)?;
        }
        Ok(registries)
    }

    /// The issuer gets signatures of what the agent consents to.
    fn write_policy(&self, number: u16) -> Result<(), Failure> {
        let path = self.dir.join(format!("group/node-{number}/policy.toml"));
        let text = fs::read_to_string(&path).map_err(|error| Failure::reading(&path, &error))?;
        let clients = text.split_once("[[rule]]").map(|(clients, _)| clients);
        let clients = clients.ok_or_else(|| Failure::internal("a policy of a new group without rules"))?;
        // As TOML has texts.
        let socket = toml::Value::from(self.registry(number).join(SOCKET).to_string_lossy().into_owned()).to_string();
        let text = format!("{clients}{}", RULES.replace("SOCKET", &socket));
        fs::write(&path, text).map_err(|error| Failure::writing(&path, &error))
    }

    /// Starts the nodes, and waits until they take connections.
    pub(crate) async fn start_nodes(&mut self) -> Result<(), Failure> {
        self.group.start_all()?;
        self.group.listening(PATIENCE).await
    }

    /// Writes every registry's data, with this key as the member's, and the locator of the trust anchor.
    pub(crate) fn write_data(&self, member: &Member, port: u16) -> Result<(), Failure> {
        let (anchor, authority) = (self.public(ANCHOR)?, self.public(AUTHORITY)?);
        let host = format!("rsync://localhost:{port}");
        let locator = format!("{host}/ta/ta.cer");
        if !is_address(&locator) {
            return Err(Failure::internal("the anchor's address is none"));
        }
        self.put(&self.dir.join("ta.tal"), &format!("{locator}\n\n{anchor}\n"))?;
        let pool =
            (1..=self.objects).map(|number| Ok(format!("{} {}\n", object(number), self.public(&object(number))?)));
        self.put(&self.dir.join(POOL), &pool.collect::<Result<String, Failure>>()?)?;
        let data = format!(
            "name = \"{RPKI}\"\n\n[[member]]\nhandle = \"{MEMBER}\"\nasns = [\"AS64496\"]\nv4 = [\"192.0.2.0/24\"]\nkeys = [\"{}\"]\n\n\
             [[authority]]\nname = \"ta\"\nkey = \"{ANCHOR}\"\npublic = \"{anchor}\"\ncertificate = \"{locator}\"\nrepository = \"{host}/repo/ta/\"\n\n\
             [[authority]]\nname = \"{MEMBER}\"\nkey = \"{AUTHORITY}\"\npublic = \"{authority}\"\nparent = \"ta\"\nmember = \"{MEMBER}\"\n\
             certificate = \"{host}/repo/ta/{MEMBER}.cer\"\nrepository = \"{host}/repo/{MEMBER}/\"\n",
            member.public()
        );
        (1..=REGISTRIES).try_for_each(|number| self.put(&self.registry(number).join(DATA), &data))
    }

    /// In one registry's data the member gets another key.
    pub(crate) fn replace_member(&self, number: u16, before: &Member, after: &Member) -> Result<(), Failure> {
        let path = self.registry(number).join(DATA);
        let data = fs::read_to_string(&path).map_err(|error| Failure::reading(&path, &error))?;
        self.put(&path, &data.replace(&before.public(), &after.public()))
    }

    fn public(&self, key: &str) -> Result<String, Failure> {
        let pem = self.theta(&["keys", "export", key])?;
        Ok(pem.lines().filter(|line| !line.starts_with('-')).collect())
    }

    /// Gives registries a statement, and waits until their agents have seen it.
    pub(crate) async fn give(
        &self,
        numbers: impl IntoIterator<Item = u16>,
        name: &str,
        statement: &str,
    ) -> Result<(), Failure> {
        for number in numbers {
            self.put(&self.registry(number).join(STATEMENTS).join(MEMBER).join(format!("{name}.toml")), statement)?;
        }
        sleep(SEEN).await;
        Ok(())
    }

    /// The same with many statements, by the names of their files.
    pub(crate) async fn give_all(&self, statements: &[(String, String)]) -> Result<(), Failure> {
        for number in 1..=REGISTRIES {
            let folder = self.registry(number).join(STATEMENTS).join(MEMBER);
            statements.iter().try_for_each(|(name, text)| self.put(&folder.join(format!("{name}.toml")), text))?;
        }
        sleep(SEEN).await;
        Ok(())
    }

    /// Takes all statements from one registry.
    pub(crate) async fn forget(&self, number: u16) -> Result<(), Failure> {
        let folder = self.registry(number).join(STATEMENTS).join(MEMBER);
        let made = fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder));
        made.map_err(|error| Failure::writing(&folder, &error))?;
        sleep(SEEN).await;
        Ok(())
    }

    /// Writes a file so that an agent reads all of it or nothing.
    fn put(&self, path: &Path, text: &str) -> Result<(), Failure> {
        let draft = path.with_extension("new");
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, path));
        written.map_err(|error| Failure::writing(path, &error))
    }

    /// Starts an agent beside each node.
    pub(crate) async fn start_agents(&mut self) -> Result<(), Failure> {
        for number in 1..=REGISTRIES {
            let log = self.registry(number).join("agent.log");
            let opened = File::options().create(true).append(true).open(&log);
            let opened = opened.map_err(|error| Failure::writing(&log, &error))?;
            let mut agent = Command::new(&self.program);
            agent.arg(AGENT).arg("--dir").arg(self.registry(number));
            // It ends when its standard input does, and that when this process ends, however it ends.
            agent.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(opened);
            self.agents.push(agent.spawn().map_err(|error| self.not_started(&error))?);
        }
        let deadline = Instant::now() + PATIENCE;
        for number in 1..=REGISTRIES {
            while !self.registry(number).join(SOCKET).exists() {
                if Instant::now() > deadline {
                    let log = self.registry(number).join("agent.log");
                    return Err(Failure::NoAnswer(format!("an agent does not start: see {}", log.display())));
                }
                sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }

    /// Ends a node as a power failure would: SIGKILL.
    pub(crate) fn kill_node(&mut self, number: u16) -> Result<(), Failure> {
        self.group.kill(number)
    }

    /// A run of an issuer that knows what this registry does, with this state, which is begun where there is none.
    pub(crate) fn issue(&self, number: u16, state: &str) -> Result<Report, Failure> {
        let (registry, stated, pool) = sources(&self.registry(number)).read(&mut None).map_err(failed)?;
        let path = self.dir.join(state);
        let mut state = StateFile::open(&path, !path.exists()).map_err(failed)?;
        // The client blocks its thread, which is none of the runtime's.
        let run = || self.run_issuer((&registry, &stated, &pool), &mut state);
        let ended = thread::scope(|scope| scope.spawn(run).join());
        ended.map_err(|_| Failure::internal("the issuer panicked"))?
    }

    fn run_issuer(
        &self,
        (registry, stated, pool): (&Registry, &Stated, &Pool),
        state: &mut StateFile,
    ) -> Result<Report, Failure> {
        let client = Client::open(&self.group.client_dir()).map_err(failed)?;
        let now = i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX);
        let (authorised, output) = (state.authorised(stated, now).map_err(failed)?, Output::new(&self.dir.join(STORE)));
        let counted = Counted { client: &client, signatures: &self.signatures };
        let (hands, output, after_break) = (&counted, &output, false);
        let issuer = Issuer {
            registry,
            authorised: &authorised,
            pool,
            hands,
            output,
            most: AT_ONCE,
            now,
            after_break,
            retry: false,
        };
        issuer.run(state).map_err(failed)
    }

    /// How many signatures the issuer has got.
    pub(crate) fn signatures(&self) -> usize {
        self.signatures.load(Ordering::Relaxed)
    }

    /// Takes the member's objects from an issuer, which has them made again: with the same keys, which are for these contents, and new certificates, as when they
    /// are renewed before they end.
    pub(crate) fn lose_objects(&self, state: &str) -> Result<(), Failure> {
        let path = self.dir.join(state);
        let text = fs::read(&path).map_err(|error| Failure::reading(&path, &error))?;
        let mut state: State = serde_json::from_slice(&text).map_err(failed)?;
        let objects = state.authorities.get_mut(MEMBER).map(|issued| std::mem::take(&mut issued.objects));
        let text = serde_json::to_vec(&state).map_err(failed)?;
        fs::write(&path, text).map_err(|error| Failure::writing(&path, &error))?;
        let (registry, ..) = sources(&self.registry(1)).read(&mut None).map_err(failed)?;
        let authority = registry.authority(MEMBER).ok_or_else(|| Failure::internal("data without the member"))?;
        for file in objects.unwrap_or_default().into_keys() {
            let address = authority.address(&file);
            let path = self.dir.join(STORE).join("rsync").join(address.trim_start_matches("rsync://"));
            fs::remove_file(&path).map_err(|error| Failure::writing(&path, &error))?;
        }
        Ok(())
    }

    /// Begins another issuer's state where one is, which pretends that no member has ever stated anything.
    pub(crate) fn copy_state(&self, from: &str, to: &str) -> Result<(), Failure> {
        let (from, to) = (self.dir.join(from), self.dir.join(to));
        let text = fs::read(&from).map_err(|error| Failure::writing(&from, &error))?;
        let mut state: State = serde_json::from_slice(&text).map_err(failed)?;
        state.counted.clear();
        let text = serde_json::to_vec(&state).map_err(failed)?;
        fs::write(&to, text).map_err(|error| Failure::writing(&to, &error))
    }

    /// Has what is finished published.
    pub(crate) fn publish(&self) -> Result<(), Failure> {
        let base = rpki::uri::Https::from_slice(b"https://localhost/rrdp/").map_err(Failure::internal)?;
        let grace = Duration::from_secs(7_200);
        let settings = Settings { base, new_session: false, without: Vec::new(), grace, most_deltas: 100 };
        let objects = self.dir.join(STORE).join("rsync");
        publish(&Files, &objects, &self.published(), &settings, WallTime::now().into()).map(drop).map_err(failed)
    }

    /// Where it is published.
    pub(crate) fn published(&self) -> PathBuf {
        self.dir.join("published")
    }

    /// What a command of `theta` prints, run in the directory of all by the group's own client.
    fn theta(&self, words: &[&str]) -> Result<String, Failure> {
        self.group.theta(&self.dir, words)
    }

    /// How often a node has refused to sign something, as its log has it.
    pub(crate) fn refusals(&self, node: u16) -> Result<usize, Failure> {
        self.group.refusals(&self.dir, node, &ASKED)
    }

    /// The last time, as `theta audit show` shows it.
    pub(crate) fn last_refusal(&self, node: u16) -> Result<String, Failure> {
        self.group.last_refusal(&self.dir, node, &ASKED)
    }

    /// The directory of all, which is absolute.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn registry(&self, number: u16) -> PathBuf {
        self.dir.join(format!("registry-{number}"))
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        Failure::Failed(format!("{} does not start: {}", self.program.display(), reason(error)))
    }
}

/// The nodes, and how many signatures they have given.
struct Counted<'a> {
    client: &'a Client,
    signatures: &'a AtomicUsize,
}

impl Hands for Counted<'_> {
    fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsigned> {
        let signed = Hands::sign(self.client, key, bytes);
        self.signatures.fetch_add(usize::from(signed.is_ok()), Ordering::Relaxed);
        signed
    }

    fn sign_all(&self, wanted: &[Wanted]) -> Vec<Result<Vec<u8>, Unsigned>> {
        let signed = Hands::sign_all(self.client, wanted);
        self.signatures.fetch_add(signed.iter().filter(|one| one.is_ok()).count(), Ordering::Relaxed);
        signed
    }
}

fn object(number: u16) -> String {
    format!("rpki-ee-{number}")
}

impl Drop for Registries {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            // Nothing can be done about one that has ended by itself.
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// What the issuer asked for and did not get.
const ASKED: [&str; 2] = ["--operation", "sign"];

/// The rules of every node, with the socket of its registry's agent.
const RULES: &str = r#"[[agent]]
name = "rpki"
socket = SOCKET
timeout_ms = 20000

[[rule]]
name = "rpki"
effect = "allow"
clients = ["client"]
keys = ["rpki-*"]
operations = ["sign"]
agent = "rpki"

[[rule]]
name = "registries-look"
effect = "allow"
clients = ["client"]
keys = ["*"]
operations = ["keys.list", "status", "audit.read"]
"#;
