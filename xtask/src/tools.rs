//! Tools that are not part of a Rust toolchain: each is found, or built into the user's cache folder with a message that
//! says why.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{debian, packages, steps::run};

const DENY_VERSION: &str = "0.20.2";
const PYTHON_PKCS11_VERSION: &str = "0.10.0";
/// The folder of Debian's packages of programs that use tokens. **Raise its number when other packages are unpacked, or in another way** (`debian.rs`,
/// `packages.rs`): what an earlier state has unpacked may lack some, or find its libraries elsewhere. `theta_knot::places` looks in the same folder. Those
/// of lower numbers (at first there was none) are left alone, since another clone may be at a state that uses them.
const HOSTS: &str = "pkcs11-hosts-2";
/// The same as `theta_chain::net::COMETBFT`, which looks for it there.
const COMETBFT_VERSION: &str = "0.38.26";

/// Checks `deny.toml`. Advisories need the public advisory database; if it cannot be reached, that is reported.
pub(crate) fn deny(root: &Path) -> Result<(), String> {
    let why = "it checks the licences and sources of all dependencies";
    let tool = find_or_install(root, "cargo-deny", DENY_VERSION, why)?;
    let mut check = Command::new(&tool);
    check.args(["--log-level", "error", "check", "bans", "licenses", "sources"]);
    run(root, check)?;
    let mut advisories = Command::new(&tool);
    advisories.args(["--log-level", "error", "check", "advisories"]).current_dir(root);
    let output = advisories.output().map_err(|error| format!("cargo-deny did not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        println!("advisories ok");
        Ok(())
    } else if text.contains("failed to fetch advisory database") {
        println!("advisories NOT CHECKED: the advisory database cannot be reached from here");
        Ok(())
    } else {
        Err(format!("cargo deny check advisories failed:\n{text}"))
    }
}

/// Checks the known answers with the second implementation, in Python.
pub(crate) fn oracle(root: &Path) -> Result<(), String> {
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !Command::new("python3").args(["-c", recent]).status().is_ok_and(|status| status.success()) {
        return Err(
            "python3, 3.11 or newer, is needed: vectors/oracle, a second implementation in Python, checks that \
                    the known answers follow from the specifications; install it (on Debian: apt-get install python3)"
                .to_owned(),
        );
    }
    let mut command = Command::new("python3");
    // -B: write no compiled files beside the sources.
    command.args(["-B", "vectors/oracle/run.py"]);
    run(root, command)
}

/// The folder with `prometheus` and `promtool`, an empty path if PATH has them. They are taken from Debian's package if they are
/// missing, which needs no rights; `None` where there is no such package.
pub(crate) fn prometheus() -> Result<Option<PathBuf>, String> {
    let runs = |folder: &Path| {
        let answers =
            |name: &str| Command::new(folder.join(name)).arg("--version").output().is_ok_and(|it| it.status.success());
        answers("prometheus") && answers("promtool")
    };
    let kept = cache()?.join("prometheus");
    let programs = kept.join("usr").join("bin");
    if let Some(found) = [PathBuf::new(), programs.clone()].into_iter().find(|folder| runs(folder)) {
        return Ok(Some(found));
    }
    println!("unpacking Debian's prometheus into {}, once: it checks the alerts and the dashboard", kept.display());
    packages::unpack(&kept, &["prometheus"])?;
    Ok(runs(&programs).then_some(programs))
}

/// Programs that use the PKCS#11 module, for its tests.
pub(crate) fn pkcs11_hosts() -> Result<debian::Hosts, String> {
    debian::pkcs11_hosts(&cache()?.join(HOSTS))
}

/// Makes sure that SoftHSM is there, if it can be had.
pub(crate) fn softhsm() -> Result<bool, String> {
    debian::softhsm(&cache()?.join(HOSTS))
}

/// The program of CometBFT: from PATH if that has version 0.38, else built from its sources by Go; `None` where there is no Go to build it.
pub(crate) fn cometbft(root: &Path) -> Result<Option<PathBuf>, String> {
    let runs = |program: &Path| {
        let output = Command::new(program).arg("version").stdin(Stdio::null()).output();
        output.is_ok_and(|it| it.status.success() && String::from_utf8_lossy(&it.stdout).starts_with("0.38."))
    };
    let kept = cache()?.join(format!("cometbft-{COMETBFT_VERSION}"));
    let built = kept.join("bin").join("cometbft");
    if let Some(found) = [PathBuf::from("cometbft"), built.clone()].into_iter().find(|program| runs(program)) {
        return Ok(Some(found));
    }
    if !Command::new("go").arg("version").output().is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    println!(
        "building CometBFT {COMETBFT_VERSION} into {}, once (a minute or two): it orders what apps/chain seals",
        kept.display()
    );
    let mut install = Command::new("go");
    let module = format!("github.com/cometbft/cometbft/cmd/cometbft@v{COMETBFT_VERSION}");
    install.args(["install", "-trimpath", &module]).env("GOBIN", kept.join("bin"));
    run(root, install)?;
    if runs(&built) { Ok(Some(built)) } else { Err("CometBFT was built but does not run".to_owned()) }
}

/// Programs of a crate that tests run.
struct Crate {
    name: &'static str,
    version: &'static str,
    programs: &'static [&'static str],
    /// Beside the features that it has anyway, none of which is taken.
    features: &'static [&'static str],
    why: &'static str,
}

impl Crate {
    /// The folder of its programs, which are built first if they are missing; `None` if PATH has them, of the same version but for the last part.
    fn find_or_build(&self, root: &Path) -> Result<Option<PathBuf>, String> {
        let Self { name, version, programs, features, why } = self;
        let series = version.rsplit_once('.').map_or(*version, |(series, _)| series);
        let runs = |folder: &Path| {
            programs.iter().all(|program| {
                let output = Command::new(folder.join(program)).arg("--version").stdin(Stdio::null()).output();
                let is_it = |said: &str| said.contains(&format!(" {series}."));
                output.is_ok_and(|it| it.status.success() && is_it(&String::from_utf8_lossy(&it.stdout)))
            })
        };
        // A name alone is looked for in PATH.
        if runs(Path::new("")) {
            return Ok(None);
        }
        let kept = cache()?.join(format!("{name}-{version}"));
        let built = kept.join("bin");
        if runs(&built) {
            return Ok(Some(built));
        }
        println!("building {name} {version} into {}, once (some minutes): {why}", kept.display());
        let mut install = built_fast(root, name, version, &kept);
        install.args(["--no-default-features", "--features", &features.join(",")]);
        run(root, install)?;
        if runs(&built) { Ok(Some(built)) } else { Err(format!("{name} was built but does not run")) }
    }
}

/// The folder of Krill's programs: from PATH if they are of version 0.16, else built from its sources.
pub(crate) fn krill(root: &Path) -> Result<Option<PathBuf>, String> {
    let krill = Crate {
        name: "krill",
        version: "0.16.1",
        programs: &["krill", "krillc"],
        // Without its users' logins, which bring a quarter of its crates.
        features: &["hsm"],
        why: "it signs route origins with the PKCS#11 module",
    };
    krill.find_or_build(root)
}

/// Routinator: that of PATH if it is of version 0.15, else built from its sources.
pub(crate) fn routinator(root: &Path) -> Result<Option<PathBuf>, String> {
    let routinator = Crate {
        name: "routinator",
        // 0.15.3 asks for a version of a crate that is not there.
        version: "0.15.2",
        programs: &["routinator"],
        // Without its pages for people, and proxies by SOCKS.
        features: &[],
        why: "it validates what registries publish over RRDP",
    };
    Ok(routinator.find_or_build(root)?.map(|folder| folder.join("routinator")))
}

/// The Python that has `python-pkcs11`: that of PATH, or an environment of its own into which pip installs it; `None` where it cannot be had.
pub(crate) fn python_pkcs11() -> Result<Option<PathBuf>, String> {
    let succeeds = |python: &Path, words: &[&str]| {
        let output = Command::new(python).args(words).stdin(Stdio::null()).output();
        output.is_ok_and(|it| it.status.success())
    };
    // Older ones do not know the curve.
    let has_it = |python: &Path| succeeds(python, &["-c", "import pkcs11; pkcs11.KeyType.EC_EDWARDS"]);
    let kept = cache()?.join(format!("python-pkcs11-{PYTHON_PKCS11_VERSION}"));
    let (given, own) = (PathBuf::from("python3"), kept.join("bin").join("python3"));
    if let Some(found) = [&given, &own].into_iter().find(|python| has_it(python)) {
        return Ok(Some(found.clone()));
    }
    println!(
        "installing python-pkcs11 {PYTHON_PKCS11_VERSION} into {}, once: a program in Python signs with the PKCS#11 module",
        kept.display()
    );
    let package = format!("python-pkcs11=={PYTHON_PKCS11_VERSION}");
    // Nothing is compiled: where there is no finished package, it is left out.
    let install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", &package];
    let is_there =
        succeeds(&given, &["-m", "venv", &kept.to_string_lossy()]) && succeeds(&own, &install) && has_it(&own);
    Ok(is_there.then_some(own))
}

/// Whether this system allows the networks that tests of `theta-wan` make. Where it does not, the reason is returned.
pub(crate) fn networks_refused(target: &Path) -> Result<Option<String>, String> {
    const REFUSED: i32 = 3;
    let output = Command::new(target.join("debug/theta-wan")).args(["check", "--able"]).output();
    let output = output.map_err(|error| format!("theta-wan did not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(None),
        Some(REFUSED) => Ok(Some(said)),
        _ => Err(format!("theta-wan check --able failed: {said}")),
    }
}

/// Whether there is a Go to build the reference host with.
pub(crate) fn has_go() -> bool {
    Command::new("go").arg("version").output().is_ok_and(|output| output.status.success())
}

/// The path of the tool, which is built first if it is missing.
pub(crate) fn find_or_install(root: &Path, name: &str, version: &str, why: &str) -> Result<String, String> {
    let kept = cache()?.join(format!("{name}-{version}"));
    match find(&kept, name) {
        Some(tool) => Ok(tool),
        None => install(root, &kept, name, version, why),
    }
}

/// The folder for tools that are built once for all of a user's clones: `thetacrypt` in `$XDG_CACHE_HOME` or `~/.cache`.
fn cache() -> Result<PathBuf, String> {
    let given = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = given.or_else(|| env::home_dir().map(|home| home.join(".cache")));
    caches.map(|caches| caches.join("thetacrypt")).ok_or_else(|| "neither XDG_CACHE_HOME nor HOME is set".to_owned())
}

fn find(kept: &Path, name: &str) -> Option<String> {
    let kept = kept.join("bin").join(name);
    [name.to_owned(), kept.to_string_lossy().into_owned()]
        .into_iter()
        .find(|tool| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success()))
}

fn install(root: &Path, kept: &Path, name: &str, version: &str, why: &str) -> Result<String, String> {
    println!("building {name} {version} into {}, once (some minutes): {why}", kept.display());
    run(root, built_fast(root, name, version, kept))?;
    find(kept, name).ok_or_else(|| format!("{name} was installed but does not run"))
}

/// Builds a program of the registry. It runs for seconds: optimising it would take longer than it saves. What several have in common is compiled once.
fn built_fast(root: &Path, name: &str, version: &str, kept: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.args(["install", "--quiet", "--locked", "--debug", "--version", version, name, "--root"]).arg(kept);
    command.envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "0")]);
    command.env("CARGO_TARGET_DIR", workshop(root));
    command
}

/// Where programs of the registry are built.
fn workshop(root: &Path) -> PathBuf {
    target(root).join("parts")
}

/// Removes what was needed to build programs that are built now.
pub(crate) fn tidy_up(root: &Path) {
    // It is not there if nothing had to be built; and what stays is in the way of nothing but space.
    let _ = fs::remove_dir_all(workshop(root));
}

/// Where cargo puts what it builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever runs the tests without `cargo xtask test` has the programs that were unpacked all the same.
    #[test]
    fn what_is_unpacked_is_where_tests_look() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let places = fs::read_to_string(root.join("apps/dnssec/knot/src/places.rs")).unwrap();
        let newest = debian::NEWEST_KNOT;
        for line in [format!("KEPT: &str = \"thetacrypt/{HOSTS}\";"), format!("NEWEST_KNOT: &str = \"{newest}\";")] {
            assert_eq!(places.matches(&line).count(), 1, "{line}");
        }
    }
}
