//! What each command runs, in which order, and how it is reported.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    debian,
    suites::{self, COMPUTING},
    tidy,
    tools::{self, target},
    unsteady::{self, Beside},
};

/// Runs everything that must hold before a change lands. Tests come last, so that their closing lines end the output.
///
/// Without a build nothing more can be said, so that everything up to it ends the run where it fails. What runs programs is told
/// together: whoever waited for half an hour learns all that is wrong.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let mut log = Log::default();
    let done = test_all(root, &mut log);
    log.summary();
    done?;
    log.failures()
}

fn test_all(root: &Path, log: &mut Log) -> Result<(), String> {
    log.step("house rules", || tidy::check(root))?;
    log.step("format", || cargo(root, &["fmt", "--all", "--check"]))?;
    log.step("licences, sources, banned crates", || tools::deny(root))?;
    log.step("lints", || {
        cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
    })?;
    log.step("documentation", || {
        let mut doc = Command::new("cargo");
        // With the features of the lints, whose dependencies are checked once for both.
        doc.args(["doc", "--quiet", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        run(root, doc)
    })?;
    log.step("known answers by a second implementation", || tools::oracle(root))?;
    // Builds the programs together with the tests: alone, they would be built with other features of the same dependencies,
    // which would all be compiled once more.
    log.step("build", || {
        cargo(root, &["build", "--quiet", "--workspace", "--features", "theta/gossip", "--bins", "--tests"])
    })?;
    log.step("the product without what is off by default", || {
        cargo(root, &["check", "--quiet", "--workspace", "--lib", "--bins"])
    })?;
    let beside = Beside::start(root, computing_tests());
    log.unsteady_among("attacks on running groups, in short", || {
        commit_attacks(root, "debug", &["--short".to_owned()])
    });
    log.note("alerts and dashboard, with a real Prometheus", || check_monitoring(root));
    let refused = log.step("emulated networks", || tools::networks_refused(&target(root)))?;
    let real = Real::find(root, log)?;
    log.unsteady_among("tests, and the end of those that compute", || {
        let waiting = suites::waiting(root)?;
        let tests = |which: Which<'_>| real.tests(refused.is_some(), which);
        let commands = [Which::Documentation, Which::Waiting(&waiting)].map(tests);
        unsteady::run(root, &mut io::stdout(), commands, Some(beside), |name| tests(Which::Named(name)))
    });
    let no_networks = refused.map(|reason| format!("networks with real sockets (wan/tests): {reason}"));
    for what in no_networks.into_iter().chain(real.not_tested()) {
        println!("NOT TESTED: {what}");
    }
    Ok(())
}

/// The programs of other people that tests run.
struct Real {
    go: bool,
    cometbft: Option<PathBuf>,
    hosts: debian::Hosts,
    /// `None`: it is in PATH.
    krill: Option<PathBuf>,
    /// `None`: it is in PATH.
    routinator: Option<PathBuf>,
    /// A Python with `python-pkcs11`.
    python: Option<PathBuf>,
}

impl Real {
    /// Finds them, or builds and unpacks them, each in a step of its own.
    fn find(root: &Path, log: &mut Log) -> Result<Self, String> {
        let found = Self {
            go: tools::has_go(),
            cometbft: log.step("CometBFT", || tools::cometbft(root))?,
            hosts: log.step("programs that know tokens", tools::pkcs11_hosts)?,
            krill: log.step("Krill", || tools::krill(root))?,
            routinator: log.step("Routinator", || tools::routinator(root))?,
            python: log.step("python-pkcs11", tools::python_pkcs11)?,
        };
        tools::tidy_up(root);
        Ok(found)
    }

    /// The command that runs these tests with them.
    fn tests(&self, are_networks_refused: bool, which: Which<'_>) -> Command {
        let mut tests = cargo_test(Command::new("cargo"));
        match which {
            Which::Documentation => tests.arg("--doc"),
            Which::Named(_) => tests.args(["--lib", "--bins", "--tests"]),
            Which::Waiting(targets) => {
                let targets = targets.iter().flat_map(|target| ["--test", target]);
                tests.args(["--lib", "--bins"]).args(targets)
            }
        };
        tests.envs(are_networks_refused.then_some(("THETA_WAN_REFUSED", "1")));
        tests.envs((!self.go).then_some(("THETA_NO_GO", "1")));
        match &self.cometbft {
            Some(program) => tests.env("THETA_COMETBFT", program),
            None => tests.env("THETA_CHAIN_REFUSED", "1"),
        };
        tests.envs(self.hosts.unpacked.as_ref().map(|unpacked| ("THETA_PKCS11_HOSTS", unpacked)));
        tests.envs(self.krill.as_ref().map(|programs| ("THETA_KRILL", programs)));
        tests.envs(self.routinator.as_ref().map(|program| ("THETA_ROUTINATOR", program)));
        tests.envs(self.python.as_ref().map(|python| ("THETA_PYTHON_PKCS11", python)));
        let left_out = self.left_out();
        let skipped = left_out.iter().flat_map(|(module, _)| ["--skip", *module]);
        tests.arg("--").args(skipped);
        if let Which::Named(name) = which {
            tests.args(["--exact", name]);
        }
        tests
    }

    /// The modules of tests of hosts that cannot run, and what is not tested for that.
    fn left_out(&self) -> Vec<(&'static str, &'static str)> {
        let no_python =
            "the PKCS#11 module with Python: the package python-pkcs11 is missing, and cannot be installed by pip";
        let python = self.python.is_none().then_some(("python_pkcs11::", no_python));
        self.hosts.left_out().into_iter().chain(python).collect()
    }

    /// What was left out, and for want of what.
    fn not_tested(&self) -> impl Iterator<Item = String> {
        let no_go = [
            "nodes behind the reference host (interop/p2p-host)",
            "signatures of ECDSA by Go's library (interop/verify-ecdsa)",
        ];
        let no_go = no_go.into_iter().filter(|_| !self.go).map(|what| format!("{what}: go is missing"));
        let no_hosts = self.left_out().into_iter().map(|(_, what)| what.to_owned());
        let no_chain = self.cometbft.is_none().then(|| format!("a chain (apps/chain/tests): {NO_GO}"));
        no_go.chain(no_hosts).chain(no_chain)
    }
}

/// Some of the tests.
#[derive(Clone, Copy)]
enum Which<'a> {
    /// Those in documentation.
    Documentation,
    /// All others but those that compute: those of libraries and programs, and these targets.
    Waiting(&'a BTreeSet<String>),
    /// The one of this name.
    Named(&'a str),
}

/// The command that runs the tests that do nothing but compute, which take no programs of others.
fn computing_tests() -> Command {
    let mut tests = cargo_test(suites::gentle_cargo());
    tests.args(COMPUTING.iter().flat_map(|target| ["--test", *target]));
    tests
}

fn cargo_test(mut cargo: Command) -> Command {
    cargo.args(["test", "--workspace", "--features", "theta/gossip", "--no-fail-fast"]);
    cargo
}

/// Why there is no CometBFT.
const NO_GO: &str = "it takes CometBFT 0.38, which is not in PATH, and Go to build it is not there";

/// Finds, builds or unpacks the programs of other people that tests run, and says what cannot be had.
pub(crate) fn parts(root: &Path) -> Result<(), String> {
    let mut log = Log::default();
    let real = Real::find(root, &mut log);
    log.summary();
    for what in real?.not_tested() {
        println!("NOT TESTED without them: {what}");
    }
    log.failures()
}

/// Checks the house rules alone.
pub(crate) fn tidy(root: &Path) -> Result<(), String> {
    tidy::check(root)
}

/// Runs the benchmarks.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    cargo(root, &["bench", "--package", "theta-bench"])
}

/// Generates the code of `crates/wire` from its `.proto` files.
pub(crate) fn proto(root: &Path) -> Result<(), String> {
    let mut generate = Command::new("cargo");
    generate.args(["test", "--quiet", "--package", "theta-wire", "--test", "generated"]).env("THETA_WRITE_PROTO", "1");
    run(root, generate)
}

/// Runs attacks on groups of real nodes. `--short` means the dev build here, and small loads in the program.
pub(crate) fn attack(root: &Path, arguments: &[String]) -> Result<(), String> {
    let quick = arguments.iter().any(|argument| argument == "--short");
    let profile: &[&str] = if quick { &[] } else { &["--release"] };
    cargo(root, &[&["build", "--quiet", "--package", "theta", "--package", "theta-attack"], profile].concat())?;
    commit_attacks(root, if quick { "debug" } else { "release" }, arguments).map(drop)
}

/// Runs the attacks with the programs of this build. Returns what was said of those that were committed twice.
fn commit_attacks(root: &Path, build: &str, arguments: &[String]) -> Result<Vec<String>, String> {
    let mut command = Command::new(target(root).join(build).join("theta-attack"));
    command.args(arguments).stderr(Stdio::inherit());
    let shown = shown(&command);
    let output = command.current_dir(root).output().map_err(|error| format!("`{shown}` did not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    if output.status.success() {
        return Ok(said.lines().filter(|line| line.contains("; UNSTEADY, ")).map(str::to_owned).collect());
    }
    // What was broken belongs into the last lines of a run, which may be all that somebody gets to see of it.
    let broken = said.lines().filter(|line| line.contains(": BROKEN: ")).map(|line| format!("\n  {line}"));
    Err(format!("`{shown}` failed ({}){}", output.status, broken.collect::<String>()))
}

/// Checks the alerts and the dashboard with a group of the dev build. Without a Prometheus to be had, that is reported.
pub(crate) fn monitoring(root: &Path) -> Result<(), String> {
    cargo(root, &["build", "--quiet", "--package", "theta", "--package", "theta-monitoring"])?;
    check_monitoring(root)
}

/// Shows the chain of `apps/chain`, in the release build.
pub(crate) fn chain(root: &Path, arguments: &[String]) -> Result<(), String> {
    let cometbft = tools::cometbft(root)?.ok_or(NO_GO)?;
    cargo(root, &["build", "--quiet", "--release", "--package", "theta-chain"])?;
    let mut command = Command::new(target(root).join("release").join("theta-chain"));
    command.arg("demo").arg("--cometbft").arg(cometbft).args(arguments);
    run(root, command)
}

/// Shows the zone of `apps/dnssec`, in the release build.
pub(crate) fn dns(root: &Path, arguments: &[String]) -> Result<(), String> {
    zone(root, "demo", arguments)
}

/// Measures how fast Knot signs zones with keys of groups, beside SoftHSM and keys in files, in the release build.
pub(crate) fn real_dns(root: &Path, arguments: &[String]) -> Result<(), String> {
    if !tools::softhsm()? {
        println!("SoftHSM cannot be had: it is left out");
    }
    let sizes = ["--names", "1000,100000", "--algorithms", "ecdsap256sha256,ed25519,rsasha256"].map(str::to_owned);
    zone(root, "measure", if arguments.is_empty() { &sizes } else { arguments })
}

fn zone(root: &Path, what: &str, arguments: &[String]) -> Result<(), String> {
    let hosts = tools::pkcs11_hosts()?;
    if !hosts.knot {
        return Err(debian::NO_KNOT.to_owned());
    }
    let packages = ["--package", "theta-dnssec-demo", "--package", "theta-pkcs11"];
    cargo(root, &[&["build", "--quiet", "--release"][..], &packages].concat())?;
    let mut command = Command::new(target(root).join("release").join("theta-dnssec-demo"));
    command.arg(what).args(arguments).envs(hosts.unpacked.map(|folder| ("THETA_PKCS11_HOSTS", folder)));
    run(root, command)
}

/// Shows the RPKI of `apps/rpki`, in the release build.
pub(crate) fn rpki(root: &Path, arguments: &[String]) -> Result<(), String> {
    let hosts = tools::pkcs11_hosts()?;
    if !hosts.rpki {
        return Err(debian::NO_RPKI.to_owned());
    }
    cargo(root, &["build", "--quiet", "--release", "--package", "theta-rpki-demo"])?;
    let mut command = Command::new(target(root).join("release").join("theta-rpki-demo"));
    command.arg("demo").args(arguments).envs(hosts.unpacked.map(|folder| ("THETA_PKCS11_HOSTS", folder)));
    run(root, command)
}

/// Measures how many objects a second the registries of `apps/rpki` issue, in the release build. It takes no programs of others.
pub(crate) fn real_rpki(root: &Path, arguments: &[String]) -> Result<(), String> {
    cargo(root, &["build", "--quiet", "--release", "--package", "theta-rpki-demo"])?;
    let mut command = Command::new(target(root).join("release").join("theta-rpki-demo"));
    command.arg("measure").args(arguments);
    run(root, command)
}

fn check_monitoring(root: &Path) -> Result<(), String> {
    let Some(programs) = tools::prometheus()? else {
        println!(
            "alerts and dashboard NOT CHECKED: prometheus and promtool are missing, and Debian's package cannot be had; \
             install them (prometheus.io/download) and put both on PATH"
        );
        return Ok(());
    };
    let mut command = Command::new(target(root).join("debug").join("theta-monitoring"));
    if !programs.as_os_str().is_empty() {
        command.arg("--prometheus").arg(programs);
    }
    run(root, command)
}

fn cargo(root: &Path, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(args);
    run(root, command)
}

/// Runs a command and shows its output; a failure is reported in one line.
pub(crate) fn run(root: &Path, mut command: Command) -> Result<(), String> {
    let shown = shown(&command);
    let status = command.current_dir(root).status().map_err(|error| format!("`{shown}` did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What ran.
#[derive(Default)]
struct Log {
    /// The steps: how long each took, and what failed in it.
    steps: Vec<(&'static str, Duration, Option<String>)>,
    /// The tests and attacks that held in a second run only.
    unsteady: Vec<String>,
}

impl Log {
    /// Runs a step without which there is no next one.
    fn step<T>(&mut self, name: &'static str, body: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        println!("\n== {name}");
        let start = Instant::now();
        let result = body().map_err(|problem| format!("{name}: {problem}"));
        self.steps.push((name, start.elapsed(), result.as_ref().err().cloned()));
        result
    }

    /// Runs a step whose failure is told at once and again at the end, and stops none after it.
    fn note<T>(&mut self, name: &'static str, body: impl FnOnce() -> Result<T, String>) -> Option<T> {
        self.step(name, body).inspect_err(|problem| println!("FAILED: {problem}")).ok()
    }

    /// Like [`Self::note`], for a step that names what held in a second run only.
    fn unsteady_among(&mut self, name: &'static str, body: impl FnOnce() -> Result<Vec<String>, String>) {
        let unsteady = self.note(name, body).unwrap_or_default();
        self.unsteady.extend(unsteady);
    }

    fn failures(&self) -> Result<(), String> {
        let failed: Vec<&str> = self.steps.iter().filter_map(|(_, _, problem)| problem.as_deref()).collect();
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
    }

    fn summary(&self) {
        let all = self.steps.iter().all(|(_, _, problem)| problem.is_none());
        println!("\n{}:", if all { "All of it holds" } else { "Not all of it holds" });
        for (name, took, problem) in &self.steps {
            println!("  {name:<52} {:>5} s{}", took.as_secs(), if problem.is_some() { "  FAILED" } else { "" });
        }
        let total: Duration = self.steps.iter().map(|(_, took, _)| *took).sum();
        println!("  {:<52} {:>5} s", "altogether", total.as_secs());
        for name in &self.unsteady {
            println!("UNSTEADY, failed beside others and held by itself (find out why, its output is above): {name}");
        }
    }
}
