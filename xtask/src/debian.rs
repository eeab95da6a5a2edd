//! Programs of other people that checks run: taken from PATH, or from Debian's packages, which are unpacked into the user's cache folder
//! without any rights.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where `pkcs11-tool`, OpenSSL's provider, Knot DNS and rpki-client are.
pub(crate) struct Hosts {
    /// The folder into which they were unpacked; `None` if the system has them.
    pub(crate) unpacked: Option<PathBuf>,
    pub(crate) tool: bool,
    pub(crate) provider: bool,
    pub(crate) knot: bool,
    pub(crate) rpki: bool,
}

/// Why there is no demonstration of an RPKI.
pub(crate) const NO_RPKI: &str = "Debian's packages rpki-client and rsync are missing and cannot be had: install them";

/// Why there is no demonstration with Knot DNS.
pub(crate) const NO_KNOT: &str = "Debian's packages knot, knot-dnsutils and ldnsutils are missing and cannot be had: install Knot DNS and ldns-verify-zone";

impl Hosts {
    /// The modules of tests that cannot run without what is missing, and what is not tested for that.
    pub(crate) fn left_out(&self) -> Vec<(&'static str, &'static str)> {
        let tool = "the PKCS#11 module with pkcs11-tool: it is missing, and Debian's package opensc cannot be had";
        let provider = "the PKCS#11 module with OpenSSL: Debian's package pkcs11-provider is missing and cannot be had";
        let knot = "the PKCS#11 module and zones with Knot DNS: Debian's packages knot, knot-dnsutils and ldnsutils are missing and cannot be had";
        let rpki =
            "the PKCS#11 module with Krill: Debian's packages rpki-client and rsync are missing and cannot be had";
        let routes = "an RPKI of five registries, from statement to validated route: Debian's packages rpki-client and rsync are missing and cannot be had";
        let parts = [
            (self.tool, ("opensc::", tool)),
            (self.provider, ("pkcs11_provider::", provider)),
            (self.knot, ("knot::", knot)),
            (self.rpki, ("krill::", rpki)),
            (self.rpki, ("no_registry_alone_", routes)),
        ];
        parts.into_iter().filter(|(is_there, _)| !is_there).map(|(_, left_out)| left_out).collect()
    }
}

/// The hosts of the PKCS#11 module: those of the system, or unpacked into this folder.
pub(crate) fn pkcs11_hosts(kept: &Path) -> Result<Hosts, String> {
    let (tool, provider, knot, rpki) = (tool_runs(None), provider_loads(None), knot_runs(None), rpki_runs(None));
    if tool && provider && knot && rpki {
        return Ok(Hosts { unpacked: None, tool, provider, knot, rpki });
    }
    if !tool_runs(Some(kept)) || !provider_loads(Some(kept)) {
        println!(
            "unpacking Debian's opensc and pkcs11-provider into {}, once: they test the PKCS#11 module",
            kept.display()
        );
        unpack(kept, &["opensc", "opensc-pkcs11", "libeac3", "pkcs11-provider"])?;
    }
    if !knot_runs(Some(kept)) {
        println!(
            "unpacking Debian's knot, knot-dnsutils and ldnsutils into {}, once: a name server tests the module",
            kept.display()
        );
        let packages = ["knot", "knot-dnsutils", "ldnsutils"].map(str::to_owned);
        let packages = with_libraries_of(&packages);
        unpack(kept, &packages.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    if !rpki_runs(Some(kept)) {
        println!(
            "unpacking Debian's rpki-client and rsync into {}, once: they judge what Krill signs with the module",
            kept.display()
        );
        let packages = with_libraries_of(&["rpki-client", "rsync"].map(str::to_owned));
        unpack(kept, &packages.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    let (tool, provider) = (tool || tool_runs(Some(kept)), provider || provider_loads(Some(kept)));
    let (knot, rpki) = (knot || knot_runs(Some(kept)), rpki || rpki_runs(Some(kept)));
    Ok(Hosts { unpacked: Some(kept.to_owned()), tool, provider, knot, rpki })
}

/// SoftHSM, unpacked into this folder if the system has none. Whether it is there.
pub(crate) fn softhsm(kept: &Path) -> Result<bool, String> {
    let runs = |kept: Option<&Path>| {
        let mut command = program(kept, "bin", "softhsm2-util");
        command.arg("--version");
        command.output().is_ok_and(|it| it.status.success())
    };
    if runs(None) || runs(Some(kept)) {
        return Ok(true);
    }
    println!(
        "unpacking Debian's softhsm2 into {}, once: a name server is measured with it beside groups",
        kept.display()
    );
    unpack(kept, &["softhsm2", "libsofthsm2"])?;
    Ok(runs(Some(kept)))
}

/// These packages, and those of their libraries that few systems have: their names differ by release.
fn with_libraries_of(packages: &[String]) -> Vec<String> {
    const RARE: [&str; 12] = [
        "libknot",
        "libdnssec",
        "libzscanner",
        "liburcu",
        "liblmdb",
        "libxdp",
        "libbpf",
        "libfstrm",
        "libprotobuf-c",
        "libldns",
        "libtls",
        "libpopt",
    ];
    let mut all = packages.to_vec();
    let mut from = 0;
    // A library may need others.
    while from < all.len() {
        let depends = Command::new("apt-cache")
            .args(["depends", "--important"])
            .args(all.get(from..).unwrap_or_default())
            .output();
        from = all.len();
        let told = depends.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        for name in told.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")) {
            if RARE.iter().any(|rare| name.starts_with(rare)) && !all.iter().any(|known| known == name) {
                all.push(name.to_owned());
            }
        }
    }
    all
}

/// A program of this folder, with the libraries that are there, or of PATH.
fn program(kept: Option<&Path>, folder: &str, name: &str) -> Command {
    let mut command =
        Command::new(kept.map_or_else(|| PathBuf::from(name), |kept| kept.join("usr").join(folder).join(name)));
    if let Some(folders) = kept.and_then(|kept| env::join_paths(libraries(kept)).ok()) {
        command.env("LD_LIBRARY_PATH", folders);
    }
    command.stdin(Stdio::null());
    command
}

/// All that a command says; nothing if it does not start.
fn told(mut command: Command) -> String {
    let output = command.output();
    output.map(|it| String::from_utf8_lossy(&[it.stdout, it.stderr].concat()).into_owned()).unwrap_or_default()
}

/// Whether Knot DNS, its tools, and the verifier of zones of another house run, from this folder or from PATH.
fn knot_runs(kept: Option<&Path>) -> bool {
    [("sbin", "knotd"), ("sbin", "knotc"), ("sbin", "keymgr"), ("bin", "kdig"), ("bin", "ldns-verify-zone")].iter().all(
        |(folder, name)| {
            let version = if *name == "ldns-verify-zone" { "-v" } else { "--version" };
            program(kept, folder, name).arg(version).output().is_ok_and(|it| it.status.success())
        },
    )
}

/// Whether the validator of the RPKI and its transport run, from this folder or from PATH. As root the validator only says that it
/// would become another user, by a name that it has.
fn rpki_runs(kept: Option<&Path>) -> bool {
    let says = |folder: &str, name: &str, option: &str, words: &str| {
        let mut command = program(kept, folder, name);
        command.arg(option);
        told(command).contains(words)
    };
    says("sbin", "rpki-client", "-V", "rpki-client") && says("bin", "rsync", "--version", "rsync  version")
}

/// The folders of libraries among what was unpacked.
fn libraries(kept: &Path) -> Vec<PathBuf> {
    let kinds = fs::read_dir(kept.join("usr/lib")).into_iter().flatten().flatten();
    kinds.map(|kind| kind.path()).filter(|kind| kind.to_string_lossy().contains("linux-gnu")).collect()
}

/// Whether `pkcs11-tool` runs, from this folder or from PATH. It has no option that only tells its version, and with one that it does not
/// know it ends by itself.
fn tool_runs(kept: Option<&Path>) -> bool {
    let mut command = program(kept, "bin", "pkcs11-tool");
    command.arg("--help");
    told(command).contains("--module")
}

/// Whether OpenSSL loads the provider, from this folder or from where it looks by itself.
fn provider_loads(kept: Option<&Path>) -> bool {
    let load = |folder: Option<&Path>| {
        let mut command = Command::new("openssl");
        // Without a module the provider loads and does nothing.
        command.args(["list", "-providers", "-provider", "pkcs11"]).stdin(Stdio::null());
        command.envs(folder.map(|folder| ("OPENSSL_MODULES", folder)));
        command.output().is_ok_and(|it| it.status.success() && String::from_utf8_lossy(&it.stdout).contains("pkcs11"))
    };
    match kept {
        None => load(None),
        Some(kept) => libraries(kept).iter().any(|folder| load(Some(&folder.join("ossl-modules")))),
    }
}

/// Unpacks packages; those that cannot be had are left out.
pub(crate) fn unpack(kept: &Path, packages: &[&str]) -> Result<(), String> {
    fs::create_dir_all(kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let quietly = |program: &str, words: &[&str]| {
        let done = Command::new(program).args(words).current_dir(kept).stdin(Stdio::null()).output();
        done.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<&str> =
        packages.iter().copied().filter(|package| !quietly("apt-get", &["download", package])).collect();
    if !missing.is_empty() {
        // A machine that is new has no lists of packages; renewing them takes rights, and is tried only then.
        let renewed = quietly("apt-get", &["update"]);
        let missing = missing.into_iter().filter(|package| !(renewed && quietly("apt-get", &["download", package])));
        let missing: Vec<&str> = missing.collect();
        if !missing.is_empty() && backports(kept, quietly) {
            for package in missing {
                quietly(
                    "apt-get",
                    &[&private(kept).each_ref().map(String::as_str)[..], &["download", package]].concat(),
                );
            }
        }
    }
    let files = fs::read_dir(kept).ok().into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    for package in files.filter(|path| path.extension().is_some_and(|ending| ending == "deb")) {
        let shown = package.to_string_lossy().into_owned();
        if !quietly("dpkg-deb", &["-x", &shown, "."]) {
            return Err(format!("{shown} cannot be unpacked: remove it, and try again"));
        }
    }
    Ok(())
}

/// Options with which apt keeps lists of its own in this folder, so that nothing of the system changes.
fn private(kept: &Path) -> [String; 4] {
    let apt = kept.join("apt");
    let option = |name: &str, path: &Path| format!("-o{name}={}", path.display());
    [
        option("Dir::Etc::sourcelist", &apt.join("sources.list")),
        option("Dir::Etc::sourceparts", Path::new("-")),
        option("Dir::State::lists", &apt.join("lists")),
        option("Dir::Cache", &apt.join("cache")),
    ]
}

/// Gets the lists of Debian's backports from where the system has its packages; whether that worked.
fn backports(kept: &Path, quietly: impl Fn(&str, &[&str]) -> bool) -> bool {
    let known = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"])
        .output();
    let Ok(known) = known else { return false };
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    let keys = Path::new("/usr/share/keyrings/debian-archive-keyring.gpg");
    let signed = if keys.is_file() { format!("[signed-by={}] ", keys.display()) } else { String::new() };
    let mut lines = known.lines().filter_map(|line| {
        let (address, release) = line.split_once(' ')?;
        let plain = address.ends_with("/debian/") && !release.contains('-');
        plain.then(|| format!("deb {signed}{address} {release}-backports main\n"))
    });
    let apt = kept.join("apt");
    let made =
        ["lists/partial", "cache/archives/partial"].iter().all(|folder| fs::create_dir_all(apt.join(folder)).is_ok());
    let Some(line) = lines.next().filter(|_| made) else { return false };
    fs::write(apt.join("sources.list"), line).is_ok()
        && quietly("apt-get", &[&private(kept).each_ref().map(String::as_str)[..], &["update"]].concat())
}
