//! Programs of other people that the tests of the PKCS#11 module run: taken from PATH, or from Debian's packages, which are unpacked into
//! the user's cache folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::packages::{unpack, unpack_all, unpack_newer, unpack_stable, with_libraries_of};

/// Where `pkcs11-tool`, OpenSSL's provider, Knot DNS, BIND, Unbound, OpenSSH's server and rpki-client are.
pub(crate) struct Hosts {
    /// The folder into which they were unpacked; `None` if the system has them.
    pub(crate) unpacked: Option<PathBuf>,
    pub(crate) tool: bool,
    pub(crate) provider: bool,
    pub(crate) knot: bool,
    /// Whether there is that of the system's own release, too, which may be an older one.
    pub(crate) release_knot: bool,
    /// Whether the newest Knot DNS tests key stores, which the release's may be too old for.
    pub(crate) key_stores: bool,
    pub(crate) bind: bool,
    pub(crate) unbound: bool,
    pub(crate) ssh: bool,
    pub(crate) rpki: bool,
}

/// The programs of Knot DNS and of the verifier of zones of another house.
const KNOT: [(&str, &str); 6] = [
    ("sbin", "knotd"),
    ("sbin", "knotc"),
    ("sbin", "keymgr"),
    ("bin", "kdig"),
    ("bin", "knsupdate"),
    ("bin", "ldns-verify-zone"),
];

/// The folder, in that of all others, of the newest Knot DNS, where that is newer than the release's. `theta_knot::places` has it, too.
pub(crate) const NEWEST_KNOT: &str = "knot";

/// Why there is no demonstration of an RPKI.
pub(crate) const NO_RPKI: &str = "Debian's packages rpki-client and rsync are missing and cannot be had: install them";

/// Why there is no demonstration with Knot DNS.
pub(crate) const NO_KNOT: &str = "Debian's packages knot, knot-dnsutils and ldnsutils are missing and cannot be had: install Knot DNS and ldns-verify-zone";

impl Hosts {
    /// Those of this folder, or of the system.
    fn of(kept: Option<&Path>) -> Self {
        let newest = kept.map(|kept| kept.join(NEWEST_KNOT));
        let release_knot = knot_runs(kept);
        Self {
            unpacked: kept.map(Path::to_owned),
            tool: tool_runs(kept),
            provider: provider_loads(kept),
            knot: release_knot || newest.as_deref().is_some_and(|newest| knot_runs(Some(newest))),
            release_knot,
            key_stores: tests_key_stores(kept)
                || newest.as_deref().is_some_and(|newest| tests_key_stores(Some(newest))),
            bind: bind_runs(kept),
            unbound: unbound_runs(kept),
            ssh: ssh_runs(kept),
            rpki: rpki_runs(kept),
        }
    }

    /// The modules of tests that cannot run without what is missing, and what is not tested for that.
    pub(crate) fn left_out(&self) -> Vec<(&'static str, &'static str)> {
        let tool = "the PKCS#11 module with pkcs11-tool: it is missing, and Debian's package opensc cannot be had";
        let provider = "the PKCS#11 module with OpenSSL: Debian's package pkcs11-provider is missing and cannot be had";
        let knot = "the PKCS#11 module and zones with Knot DNS: Debian's packages knot, knot-dnsutils and ldnsutils are missing and cannot be had";
        let release_knot = "an operator's agent with the release's own Knot DNS, beside the newest one: Debian's packages knot, knot-dnsutils and \
                            ldnsutils cannot be had in its version";
        let key_stores = "the PKCS#11 module with Knot's own tests of key stores: Knot DNS 3.4 (Debian's stable) is missing and cannot be had";
        let bind = "the PKCS#11 module with BIND: version 9.20 (Debian's packages bind9, bind9-utils and bind9-dnsutils, from backports where the release has \
                    an older one), pkcs11-provider or ldnsutils are missing and cannot be had";
        let unbound = "signed zones with Unbound: Debian's package unbound is missing and cannot be had";
        let ssh = "the PKCS#11 module with OpenSSH: Debian's packages openssh-client, openssh-server or libnss-wrapper are missing and cannot be had";
        let rpki =
            "the PKCS#11 module with Krill: Debian's packages rpki-client and rsync are missing and cannot be had";
        let routes = "an RPKI of five registries, from statement to validated route: Debian's packages rpki-client and rsync are missing and cannot be had";
        let parts = [
            (self.tool, ("opensc::", tool)),
            (self.provider, ("pkcs11_provider::", provider)),
            (self.knot, ("knot::", knot)),
            (self.release_knot, ("digests_of_the_releases_own_knot_", release_knot)),
            (self.key_stores, ("key_stores::", key_stores)),
            // Its keys are there by the provider, and its zones are verified as those of Knot.
            (self.bind && self.provider && self.knot, ("bind::", bind)),
            (self.bind, ("delv_accepts_", bind)),
            (self.unbound, ("unbound_accepts_", unbound)),
            (self.ssh, ("ssh::", ssh)),
            (self.rpki, ("krill::", rpki)),
            (self.rpki, ("no_registry_alone_", routes)),
            (self.rpki, ("nothing_of_any_kind_is_forged_", routes)),
            (self.rpki, ("two_of_three_of_a_members_keys_", routes)),
            (self.rpki, ("three_registries_override_", routes)),
            (self.rpki, ("routinator_validates_", routes)),
            (self.rpki, ("what_is_due_is_renewed_by_itself_", routes)),
            (self.rpki, ("what_was_lost_is_begun_anew_", routes)),
            (self.rpki, ("what_was_left_for_long_", routes)),
        ];
        parts.into_iter().filter(|(is_there, _)| !is_there).map(|(_, left_out)| left_out).collect()
    }
}

/// The hosts of the PKCS#11 module: those of the system, or unpacked into this folder.
pub(crate) fn pkcs11_hosts(kept: &Path) -> Result<Hosts, String> {
    let own = Hosts::of(None);
    if own.tool && own.provider && own.key_stores && own.bind && own.unbound && own.ssh && own.rpki {
        return Ok(own);
    }
    let place = kept.display();
    if !tool_runs(Some(kept)) || !provider_loads(Some(kept)) {
        println!("unpacking Debian's opensc and pkcs11-provider into {place}, once: they test the PKCS#11 module");
        unpack(kept, &["opensc", "opensc-pkcs11", "libeac3", "pkcs11-provider"])?;
    }
    if !knot_runs(Some(kept)) {
        println!(
            "unpacking Debian's knot, knot-dnsutils and ldnsutils into {place}, once: a name server tests the module"
        );
        unpack_all(kept, &with_libraries_of(&["knot", "knot-dnsutils", "ldnsutils"]))?;
    }
    if !Hosts::of(Some(kept)).key_stores {
        let place = kept.join(NEWEST_KNOT);
        println!(
            "unpacking Knot DNS of Debian's stable into {}, once: tests and demonstration run with it",
            place.display()
        );
        unpack_stable(&place, &["knot", "knot-keymgr", "knot-dnsutils", "ldnsutils"], &KNOT)?;
        // Programs that do not run would be found all the same.
        if !tests_key_stores(Some(&place)) {
            let _ = fs::remove_dir_all(place.join("usr"));
        }
    }
    if !bind_runs(Some(kept)) {
        println!(
            "unpacking Debian's bind9 (9.20), bind9-utils and bind9-dnsutils into {place}, once: it makes its keys by the module"
        );
        unpack_newer(kept, &["bind9", "bind9-libs", "bind9-utils", "bind9-dnsutils"], has_key_stores)?;
    }
    if !unbound_runs(Some(kept)) {
        println!("unpacking Debian's unbound into {place}, once: it validates the zones that name servers sign");
        unpack_all(kept, &with_libraries_of(&["unbound"]))?;
    }
    if !ssh_runs(Some(kept)) {
        println!("unpacking Debian's openssh-server and libnss-wrapper into {place}, once: one logs in by the module");
        unpack_all(kept, &with_libraries_of(&["openssh-server", "libnss-wrapper"]))?;
    }
    if !rpki_runs(Some(kept)) {
        println!(
            "unpacking Debian's rpki-client and rsync into {place}, once: they judge what Krill signs with the module"
        );
        unpack_all(kept, &with_libraries_of(&["rpki-client", "rsync"]))?;
    }
    let found = Hosts::of(Some(kept));
    Ok(Hosts {
        unpacked: found.unpacked,
        tool: own.tool || found.tool,
        provider: own.provider || found.provider,
        knot: own.knot || found.knot,
        release_knot: own.release_knot || found.release_knot,
        key_stores: own.key_stores || found.key_stores,
        bind: own.bind || found.bind,
        unbound: own.unbound || found.unbound,
        ssh: own.ssh || found.ssh,
        rpki: own.rpki || found.rpki,
    })
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
    KNOT.iter().all(|(folder, name)| {
        let version = if *name == "ldns-verify-zone" { "-v" } else { "--version" };
        program(kept, folder, name).arg(version).output().is_ok_and(|it| it.status.success())
    })
}

/// Whether Knot DNS runs, and is one that tests key stores.
fn tests_key_stores(kept: Option<&Path>) -> bool {
    let mut keymgr = program(kept, "sbin", "keymgr");
    keymgr.arg("--help");
    told(keymgr).contains("keystore-test") && knot_runs(kept)
}

/// Whether BIND with key stores and its tools run, from this folder or from PATH.
fn bind_runs(kept: Option<&Path>) -> bool {
    let mut named = program(kept, "sbin", "named");
    named.arg("-v");
    // BIND 9.20.23-1 (Stable Release) <id:>
    let is_new = told(named).split_whitespace().nth(1).is_some_and(has_key_stores);
    // Their options that tell a version differ; this one all refuse, if they start.
    let starts = |folder: &str, name: &str| {
        let mut command = program(kept, folder, name);
        command.arg("--help");
        command.output().is_ok_and(|it| it.status.code() == Some(1))
    };
    is_new && starts("sbin", "rndc") && ["nsupdate", "delv", "dig"].iter().all(|name| starts("bin", name))
}

/// Whether the resolver runs, from this folder or from PATH.
fn unbound_runs(kept: Option<&Path>) -> bool {
    let mut unbound = program(kept, "sbin", "unbound");
    unbound.arg("-V");
    told(unbound).starts_with("Version ")
}

/// Whether OpenSSH's client runs from PATH, and its server from this folder or from PATH, with the library that gives it a user.
fn ssh_runs(kept: Option<&Path>) -> bool {
    let says = |mut command: Command, option: &str| {
        command.arg(option).stdin(Stdio::null());
        told(command).contains("OpenSSH_")
    };
    // The server has no option that only tells its version in all releases, and with one that it does not know it ends by itself.
    let runs = says(Command::new("ssh"), "-V") && says(program(kept, "sbin", "sshd"), "-?");
    let folders = kept.map_or_else(|| libraries(Path::new("/")), libraries);
    runs && folders.iter().any(|folder| folder.join("libnss_wrapper.so").is_file())
}

/// Whether this is a version of BIND with key stores, which came with 9.20.
fn has_key_stores(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(9), Some(20))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_stores_came_with_bind_9_20() {
        for (version, has) in [
            ("9.20.23-1~deb13u1~bpo12+1-Debian", true),
            ("9.21.3", true),
            ("10.0.0", true),
            ("9.18.41-1~deb12u1-Debian", false),
            ("9.9.5", false),
            ("utility", false),
        ] {
            assert_eq!(has_key_stores(version), has, "{version}");
        }
    }
}
