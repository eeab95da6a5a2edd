//! Five registries on this machine, and relying parties.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use theta_knot::{places::Places, server::free_port};

use crate::{
    clock::Clock,
    harness::{Group, command},
    processes::{PATIENCE, Said, Standing, agent, is_root, program, said, serve, signal, under},
    routinator::Web,
};

/// Private keys of RSA whose primes are safe, none of them for anything but tests.
const KEYS: &str = include_str!("../../../../modules/pkcs11/tests/pkcs11/krill/keys.pem");
const END: &str = "-----END PRIVATE KEY-----\n";
/// What the issuer is told that all of one registry's issuers are told.
const ISSUER: &str = "--registry registry.toml --statements statements --state issued";
/// The keys of objects.
const OBJECTS: usize = 10;

/// What is announced: by which network, which prefix.
pub(crate) type Origins = BTreeSet<(u64, String)>;

pub(crate) fn origins(all: &[(u64, &str)]) -> Origins {
    all.iter().map(|(asn, prefix)| (*asn, (*prefix).to_owned())).collect()
}

/// Makes a key of Ed25519 in a file, and returns its public part.
fn new_key(folder: &Path, file: &str) -> String {
    let made = said(program(folder, "theta-rpki", &format!("key new --out {file} --json"))).ok();
    let made: Value = serde_json::from_str(made.lines().next().unwrap()).unwrap();
    made["key"].as_str().unwrap().to_owned()
}

/// The registries' processes. They end when this is dropped.
pub(crate) struct Registries {
    group: Group,
    /// By the numbers of their nodes.
    agents: BTreeMap<u16, Child>,
    rsync: Child,
    web: Web,
    /// Under which all processes are started, if it is not the machine's.
    clock: Option<Clock>,
}

impl Drop for Registries {
    fn drop(&mut self) {
        for child in self.agents.values_mut().chain([&mut self.rsync]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Registries {
    /// With keys of a trust anchor, a member's authority and objects that no registry has, and one agent each, of which all know the same. The member has one
    /// key.
    pub(crate) fn new() -> Self {
        Self::with_member(["ann.key"], 1)
    }

    /// The same with these keys of the member, of which so many sign.
    pub(crate) fn with_member<const N: usize>(members: [&str; N], need: usize) -> Self {
        Self::with((members, need), |_| None)
    }

    /// With a clock that the test sets ahead.
    pub(crate) fn with_clock() -> Self {
        Self::with((["ann.key"], 1), |folder| Some(Clock::new(folder)))
    }

    fn with<const N: usize>((members, need): ([&str; N], usize), clock: impl Fn(&Path) -> Option<Clock>) -> Self {
        let mut group = Group::made_with(&["--nodes", "5", "--threshold", "3", "--no-keys"]);
        let names = ["rpki-ta", "rpki-acme"].map(str::to_owned).into_iter();
        let names: Vec<_> = names.chain((0..OBJECTS).map(|number| format!("rpki-ee-{number}"))).collect();
        for (key, name) in KEYS.split_inclusive(END).zip(&names) {
            group.file("rsa.pem", key);
            group.theta(&["keys", "import", "--name", name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
        }
        let numbers: Vec<_> = group.numbers().collect();
        numbers.iter().for_each(|node| let_agents_decide(&group, *node));
        let clock = clock(group.path());
        match &clock {
            None => group.start_all(),
            Some(clock) => {
                numbers.iter().for_each(|node| group.start_by(*node, under(Some(clock), command())));
                numbers.iter().for_each(|node| group.await_up(*node));
                group.await_peers();
            }
        }
        let public = |name: &str| {
            let pem = group.theta(&["keys", "export", name]).ok().text();
            pem.lines().filter(|line| !line.starts_with('-')).collect::<String>()
        };
        let pool = names[2..].iter().map(|name| format!("{name} {}\n", public(name))).collect::<String>();
        group.file("pool.keys", pool);
        let path = group.path().to_owned();
        fs::create_dir_all(path.join("statements/acme")).unwrap();
        ["cache", "out", "pub"].iter().for_each(|name| fs::create_dir(path.join(name)).unwrap());
        let member = members.map(|file| new_key(&path, file));
        let (port, secure) = (free_port().unwrap(), free_port().unwrap());
        let host = format!("rsync://localhost:{port}");
        let published = path.join("pub/rsync/current").join(format!("localhost:{port}")).join("ta");
        let mut web = Web::serve(&path, secure, &[("rrdp", path.join("pub/rrdp")), ("ta", published)]);
        let site = web.site();
        let operators = ["one.op", "two.op"].map(|file| new_key(&path, file));
        let data = registry((&host, &site), (&member, need), &public("rpki-ta"), &public("rpki-acme"));
        group.file("registry.toml", format!("{data}\n[operators]\nkeys = {operators:?}\nneed = 2\n"));
        let anchor = public("rpki-ta");
        group.file("ta.tal", format!("{host}/ta/ta.cer\n\n{anchor}\n"));
        fs::create_dir(path.join("tals")).unwrap();
        group.file("tals/ta.tal", format!("{site}/ta/ta.cer\n{host}/ta/ta.cer\n\n{anchor}\n"));
        let rsync = serve(&group, port);
        let agents = numbers.iter().map(|node| (*node, agent(&group, *node, clock.as_ref(), ""))).collect();
        web.clock = clock.iter().flat_map(Clock::environment).map(|(name, value)| (name, value.to_owned())).collect();
        Self { group, agents, rsync, web, clock }
    }

    pub(crate) fn path(&self) -> &Path {
        self.group.path()
    }

    /// The member grants a ROA, and all registries get that.
    pub(crate) fn grant(&self, file: &str, network: &str, prefix: &str) {
        self.state("grant", file, network, prefix);
    }

    /// The member withdraws it.
    pub(crate) fn withdraw(&self, file: &str, network: &str, prefix: &str) {
        self.state("withdraw", file, network, prefix);
    }

    fn state(&self, act: &str, file: &str, network: &str, prefix: &str) {
        self.put_statement(&format!("{act} --roa {network} --prefix {prefix} --out statements/acme/{file}"));
        self.wait();
    }

    /// The member says which providers a network has.
    pub(crate) fn grant_providers(&self, file: &str, network: &str, provider: &str) {
        self.put_statement(&format!("grant --aspa {network} --provider {provider} --out statements/acme/{file}"));
        self.wait();
    }

    /// The member states something in these words, by its first key, while agents may be away.
    pub(crate) fn put_statement(&self, words: &str) {
        self.rpki(&format!("statement {words} --registry registry.toml --member acme --key ann.key"));
    }

    /// Another key of the member signs a statement that is there.
    pub(crate) fn sign_statement(&self, key: &str, file: &str) {
        self.rpki(&format!("statement sign --registry registry.toml --key {key} statements/acme/{file} --yes"));
        self.wait();
    }

    /// What the program of registries and members says.
    pub(crate) fn rpki(&self, words: &str) -> String {
        said(self.program("theta-rpki", words)).ok()
    }

    /// A program of this workspace, in the registries' folder and by their clock.
    fn program(&self, name: &str, words: &str) -> Command {
        under(self.clock.as_ref(), program(self.path(), name, words))
    }

    /// The clock that the test sets.
    pub(crate) fn clock(&self) -> &Clock {
        self.clock.as_ref().unwrap()
    }

    /// Somebody states something with another key, in a registry's data where that is the member's.
    pub(crate) fn forge(&self, network: &str, prefix: &str) {
        let key = new_key(self.path(), "forger.key");
        let data = fs::read_to_string(self.path().join("registry.toml")).unwrap();
        let before = data.lines().find(|line| line.starts_with("keys = ")).unwrap();
        let data = data.replace(before, &format!("keys = [{key:?}]"));
        self.group.file("forged.toml", data);
        fs::create_dir_all(self.path().join("forged/acme")).unwrap();
        let words = format!(
            "statement grant --registry forged.toml --member acme --roa {network} --prefix {prefix} --key forger.key --out forged/acme/1.toml"
        );
        said(program(self.path(), "theta-rpki", &words)).ok();
    }

    /// A run of an issuer that knows these data, these statements and this state, which is begun if it is not there.
    pub(crate) fn issue(&self, registry: &str, statements: &str, state: &str) -> Said {
        self.issue_with(&format!("--registry {registry} --statements {statements} --state {state}"), state)
    }

    /// The same with all that it is told, and this state.
    fn issue_with(&self, words: &str, state: &str) -> Said {
        said(self.issuer(words, state))
    }

    fn issuer(&self, words: &str, state: &str) -> Command {
        let begin = if self.path().join(state).exists() { "" } else { "--new-state" };
        let words = format!("{words} --pool pool.keys --store store --client theta-group/client {begin}");
        self.program("theta-rpki-issuer", &words)
    }

    /// A run of the issuer of all other tests, with more options.
    pub(crate) fn issue_by(&self, options: &str) -> Said {
        self.issue_with(&format!("{ISSUER} {options}"), "issued")
    }

    /// The same issuer, which goes on, with these options.
    pub(crate) fn issue_on(&self, options: &str) -> Standing {
        let command = self.issuer(&format!("{ISSUER} {options}"), "issued");
        Standing::start(command, self.path().join("issuer.log"))
    }

    /// A run of the publisher.
    pub(crate) fn publish(&self) -> Said {
        self.publish_by("")
    }

    /// The same with more options.
    pub(crate) fn publish_by(&self, options: &str) -> Said {
        said(self.publisher(options))
    }

    /// A publisher that goes on, with these options.
    pub(crate) fn publish_on(&self, options: &str) -> Standing {
        Standing::start(self.publisher(options), self.path().join("publisher.log"))
    }

    fn publisher(&self, options: &str) -> Command {
        let site = self.web.site();
        let words = format!("publish --objects store/rsync --output pub --base {site}/rrdp/ {options}");
        self.program("theta-rpki-publication", &words)
    }

    /// Manifests are told apart by their seconds; agents look at their files once in one.
    pub(crate) fn wait(&self) {
        sleep(Duration::from_millis(2_100));
    }

    /// What a node has refused.
    pub(crate) fn refused(&self, node: u16) -> String {
        let node = node.to_string();
        self.group.theta(&["audit", "show", "--node", &node, "--refused", "--last", "20"]).ok().text()
    }

    /// Waits until a node has on record that its agent refuses to sign something with this key, in these words: whoever asked has his answer before the slowest
    /// node has decided.
    #[track_caller]
    pub(crate) fn await_refusal(&self, node: u16, key: &str, words: &str) {
        self.await_refusals_of(&[node], 1, key, words);
    }

    /// The same of three of the other four, after whose answers no signature can come about any more: whoever asked may have gone away then, and who
    /// has gone away is owed no decision.
    #[track_caller]
    pub(crate) fn await_refusals(&self, other_than: u16, key: &str, words: &str) {
        let others: Vec<u16> = (1..=5).filter(|node| *node != other_than).collect();
        self.await_refusals_of(&others, 3, key, words);
    }

    /// The same of so many of these nodes.
    #[track_caller]
    fn await_refusals_of(&self, nodes: &[u16], enough: usize, key: &str, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        let is_it = |line: &str| [key, words, "agent rpki refuses it"].iter().all(|part| line.contains(part));
        let has = |node: &&u16| self.refused(**node).lines().any(is_it);
        while nodes.iter().filter(has).count() < enough {
            let records = || nodes.iter().map(|node| self.refused(*node)).collect::<String>();
            assert!(Instant::now() < deadline, "{enough} of {nodes:?} have not refused {key}, {words}: {}", records());
            sleep(Duration::from_millis(100));
        }
    }

    /// Waits until three of the other nodes say that this one took part in what their agents refuse, and nobody says it of another one.
    #[track_caller]
    pub(crate) fn await_named(&self, taken_over: u16) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.group.theta(&["status", "--json"]).ok().json();
            let disputed = status["culprits"].as_array().unwrap().iter().filter(|one| one["disputed"] == true);
            let told: Vec<_> = disputed.map(|one| (&one["node"], one["told_by"].as_array().unwrap().len())).collect();
            assert!(told.iter().all(|(node, _)| **node == taken_over), "{told:?}");
            if told.iter().any(|(_, by)| *by >= 3) {
                return;
            }
            assert!(Instant::now() < deadline, "node {taken_over} is not named: {status}");
            sleep(Duration::from_millis(100));
        }
    }

    /// What a node has on record of late.
    pub(crate) fn record(&self, node: u16) -> String {
        let node = node.to_string();
        self.group.theta(&["audit", "show", "--node", &node, "--last", "40"]).ok().text()
    }

    /// What an agent has said to its operator.
    pub(crate) fn agent_log(&self, node: u16) -> String {
        fs::read_to_string(self.group.node_dir(node).join("rpki.log")).unwrap()
    }

    /// A registry's own folder.
    pub(crate) fn folder(&self, node: u16) -> PathBuf {
        self.group.node_dir(node)
    }

    /// A signature by the nodes with one of their keys, or what they say against it.
    pub(crate) fn sign(&self, key: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let (file, _) = (self.group.file("to-sign", bytes), fs::remove_file(self.path().join("signed")));
        let run = self.group.theta(&["sign", &file, "--key", key, "-o", "signed"]);
        fs::read(self.path().join("signed")).map_err(|_| format!("{run:?}"))
    }

    /// A node and its agent end as by a power failure.
    pub(crate) fn kill(&mut self, node: u16) {
        self.group.kill(node);
        let mut agent = self.agents.remove(&node).unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
        fs::remove_file(self.folder(node).join("rpki.sock")).unwrap();
    }

    pub(crate) fn restart(&mut self, node: u16) {
        self.restart_agent(node, "");
        self.group.start_by(node, under(self.clock.as_ref(), command()));
        self.group.await_up(node);
    }

    /// An agent with these options, in the place of the one that was there if it still is.
    pub(crate) fn restart_agent(&mut self, node: u16, options: &str) {
        if let Some(mut before) = self.agents.remove(&node) {
            before.kill().unwrap();
            before.wait().unwrap();
            fs::remove_file(self.folder(node).join("rpki.sock")).unwrap();
        }
        self.agents.insert(node, agent(&self.group, node, self.clock.as_ref(), options));
    }

    /// Sends a signal to all agents that run.
    pub(crate) fn signal_agents(&self, name: &str) {
        self.agents.values().for_each(|agent| signal(agent, name));
    }

    /// What a router would be told by Routinator.
    #[track_caller]
    pub(crate) fn routinated(&self) -> Origins {
        self.web.validated()
    }

    /// And of which providers each network has.
    #[track_caller]
    pub(crate) fn providers(&self) -> Vec<(String, Vec<String>)> {
        self.web.providers()
    }

    /// The files of the member's authority, as they are to be published.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let hosts = self.path().join("store/rsync");
        let host = fs::read_dir(hosts).unwrap().next().unwrap().unwrap();
        let files = fs::read_dir(host.path().join("repo/acme")).unwrap().map(Result::unwrap);
        files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
    }

    /// A registry is taken over: its node signs whatever it is asked to.
    pub(crate) fn take_over(&self, node: u16) {
        let policy = self.folder(node).join("policy.toml");
        let text = fs::read_to_string(&policy).unwrap();
        fs::write(&policy, text.replace("operations = [\"sign\"]\nagent = \"rpki\"\n", "operations = [\"sign\"]\n"))
            .unwrap();
        self.group.await_changed_policy(node);
    }

    /// What a router would be told by `rpki-client`, which starts from the locator and believes nothing that is not signed.
    pub(crate) fn validated(&self) -> Origins {
        let places = Places::of_this_machine();
        places.check(&["rpki-client", "rsync"]).unwrap();
        let (client, rsync) = (places.command("rpki-client"), places.command("rsync"));
        let (client, rsync) = (client.get_program(), rsync.get_program());
        // As root it would become a user of its own, which few systems have.
        let mut command = Command::new(if is_root() { "unshare".as_ref() } else { client });
        if is_root() {
            command.arg("--user").arg(client);
        }
        places.with_libraries(&mut command);
        let mut command = under(self.clock.as_ref(), command);
        command.current_dir(self.path()).args(["-R", "-j", "-e"]).arg(rsync);
        command.args(["-t", "ta.tal", "-d", "cache", "out"]);
        let said = said(command).ok();
        let report: Value = serde_json::from_slice(&fs::read(self.path().join("out/json")).unwrap()).unwrap();
        let told = &report["metadata"];
        for (what, how_many) in
            [("invalidcertificates", 0), ("failedmanifests", 0), ("invalidroas", 0), ("tals", 1), ("certificates", 2)]
        {
            assert_eq!(told[what], how_many, "{what}: {said} {told}");
        }
        let payloads = report["roas"].as_array().unwrap();
        payloads.iter().map(|it| (it["asn"].as_u64().unwrap(), it["prefix"].as_str().unwrap().to_owned())).collect()
    }
}

/// The issuer gets signatures of what the registry's agent consents to, and of nothing else.
fn let_agents_decide(group: &Group, node: u16) {
    let policy = group.node_dir(node).join("policy.toml");
    let socket = group.node_dir(node).join("rpki.sock");
    let rule = format!(
        "\n[[agent]]\nname = \"rpki\"\nsocket = \"{}\"\ntimeout_ms = 20000\n\n[[rule]]\nname = \"rpki\"\neffect = \"allow\"\nclients = [\"client\"]\n\
         keys = [\"rpki-*\"]\noperations = [\"sign\"]\nagent = \"rpki\"\n\n",
        socket.display()
    );
    let text = fs::read_to_string(&policy).unwrap();
    // Before the rule that allows everything, which then is about everything else.
    let place = text.find("[[rule]]").unwrap();
    fs::write(&policy, [&text[..place], &rule, &text[place..]].concat()).unwrap();
}

fn registry((host, site): (&str, &str), (member, need): (&[String], usize), anchor: &str, acme: &str) -> String {
    format!(
        "name = \"example\"\n\n[[member]]\nhandle = \"acme\"\nasns = [\"AS64496\"]\nv4 = [\"192.0.2.0/24\"]\nv6 = [\"2001:db8::/32\"]\nkeys = {member:?}\nneed = {need}\n\n\
         [[authority]]\nname = \"ta\"\nkey = \"rpki-ta\"\npublic = \"{anchor}\"\n\
         certificate = \"{host}/ta/ta.cer\"\nrepository = \"{host}/repo/ta/\"\nnotify = \"{site}/rrdp/notification.xml\"\n\n\
         [[authority]]\nname = \"acme\"\nkey = \"rpki-acme\"\npublic = \"{acme}\"\nparent = \"ta\"\nmember = \"acme\"\n\
         certificate = \"{host}/repo/ta/acme.cer\"\nrepository = \"{host}/repo/acme/\"\nnotify = \"{site}/rrdp/notification.xml\"\n"
    )
}
