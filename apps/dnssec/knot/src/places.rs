//! Where programs of other people are: in Debian's packages that were unpacked without any rights, or in PATH.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::KnotError;

/// The environment variable with the folder into which packages were unpacked; `cargo xtask test` and `cargo xtask dns` set it if they
/// had to.
pub const UNPACKED: &str = "THETA_PKCS11_HOSTS";

/// Where they unpack them, in the user's cache folder. `xtask/src/tools.rs` has the same name, and says when its number is raised.
const KEPT: &str = "thetacrypt/pkcs11-hosts-2";

/// The folder in there of the newest Knot DNS, where that is newer than the release's: it has its own libraries.
const NEWEST_KNOT: &str = "knot";

/// Where daemons are, which only root has in PATH.
const DAEMONS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Debian's packages of the programs that are asked for.
const PACKAGES: [(&str, &str); 19] = [
    ("knotd", "knot"),
    ("knotc", "knot"),
    ("keymgr", "knot"),
    ("kdig", "knot-dnsutils"),
    ("knsupdate", "knot-dnsutils"),
    ("ldns-verify-zone", "ldnsutils"),
    ("softhsm2-util", "softhsm2"),
    ("pkcs11-tool", "opensc"),
    ("named", "bind9"),
    ("rndc", "bind9-utils"),
    ("nsupdate", "bind9-dnsutils"),
    ("delv", "bind9-dnsutils"),
    ("dig", "bind9-dnsutils"),
    ("unbound", "unbound"),
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("rpki-client", "rpki-client"),
    ("rsync", "rsync"),
];

/// How a program ends whose libraries are missing, as the system's loader has it.
const NOT_LOADED: i32 = 127;

/// The folders in which programs are looked for, in their order.
#[derive(Clone, Debug)]
pub struct Places {
    /// Trees of unpacked packages, in which there is `usr`.
    unpacked: Vec<PathBuf>,
    path: Vec<PathBuf>,
}

impl Places {
    /// Those of this machine: [`UNPACKED`], the user's cache folder, `PATH`, and where daemons are. Before all of them is the newest Knot DNS, if one was
    /// unpacked that is newer than the release's.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::of_the_release().with_newest_knot()
    }

    /// The same with the Knot DNS of the system's own release, which may be an older one.
    #[must_use]
    pub fn of_the_release() -> Self {
        let said = env::var_os(UNPACKED).map(PathBuf::from);
        let given = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = given.or_else(|| env::home_dir().map(|home| home.join(".cache")));
        let kept = caches.map(|caches| caches.join(KEPT));
        let unpacked = said.into_iter().chain(kept).filter(|folder| folder.is_dir()).collect();
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::split_paths(&path).chain(DAEMONS.map(PathBuf::from)).collect();
        Self { unpacked, path }
    }

    fn with_newest_knot(self) -> Self {
        let Self { unpacked, path } = self;
        let newest = unpacked.iter().map(|tree| tree.join(NEWEST_KNOT)).filter(|folder| folder.is_dir());
        Self { unpacked: newest.chain(unpacked.iter().cloned()).collect(), path }
    }

    /// Makes sure that all of these programs are there and start.
    ///
    /// # Errors
    /// [`KnotError::Missing`] names the first that does not.
    pub fn check(&self, programs: &[&str]) -> Result<(), KnotError> {
        match programs.iter().find(|program| !self.has(program)) {
            None => Ok(()),
            Some(program) => Err(KnotError::Missing { program: (*program).to_owned(), package: package(program) }),
        }
    }

    /// Whether a program is there and starts.
    #[must_use]
    pub fn has(&self, program: &str) -> bool {
        let starts = |mut command: Command| {
            let output = command.arg("--help").stdin(Stdio::null()).output();
            output.is_ok_and(|output| output.status.code() != Some(NOT_LOADED))
        };
        self.find(program).is_some() && starts(self.command(program))
    }

    /// A program, which finds its libraries if it was unpacked with them. One that is nowhere fails when it is started.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let Some((found, tree)) = self.find(program) else { return Command::new(program) };
        let mut command = Command::new(found);
        if let Some(tree) = tree {
            let_find(&mut command, &libraries(tree));
        }
        command
    }

    /// The folders of libraries that were unpacked, one for each kind of machine.
    #[must_use]
    pub fn libraries(&self) -> Vec<PathBuf> {
        self.unpacked.iter().flat_map(|tree| libraries(tree)).collect()
    }

    /// Lets a program that was not unpacked find them.
    pub fn with_libraries(&self, command: &mut Command) {
        let_find(command, &self.libraries());
    }

    /// Where a program is, and the tree if it is in one.
    fn find(&self, program: &str) -> Option<(PathBuf, Option<&Path>)> {
        let trees = self.unpacked.iter().flat_map(|tree| {
            ["bin", "sbin"].map(|kind| (tree.join("usr").join(kind).join(program), Some(tree.as_path())))
        });
        let system = self.path.iter().map(|folder| (folder.join(program), None));
        trees.chain(system).find(|(place, _)| place.is_file())
    }
}

fn package(program: &str) -> &'static str {
    PACKAGES.iter().find(|(name, _)| *name == program).map_or("that has it", |(_, package)| *package)
}

fn libraries(tree: &Path) -> Vec<PathBuf> {
    let kinds = fs::read_dir(tree.join("usr/lib")).into_iter().flatten().flatten();
    kinds.map(|kind| kind.path()).filter(|kind| kind.to_string_lossy().contains("linux-gnu")).collect()
}

fn let_find(command: &mut Command, folders: &[PathBuf]) {
    // Folders with a colon in their names cannot be said; the program then says itself which library it misses.
    if !folders.is_empty()
        && let Ok(joined) = env::join_paths(folders)
    {
        command.env("LD_LIBRARY_PATH", joined);
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn unpacked_programs_come_first_and_with_their_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let [tree, system] = ["tree", "system"].map(|name| dir.path().join(name));
        let [tools, libraries] = ["usr/sbin", "usr/lib/x86_64-linux-gnu"].map(|name| tree.join(name));
        [&system, &tools, &libraries].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let places = Places { unpacked: vec![tree], path: vec![system.clone()] };
        fs::write(system.join("kdig"), "").unwrap();
        let found = places.command("kdig");
        assert_eq!((Path::new(found.get_program()), found.get_envs().count()), (system.join("kdig").as_path(), 0));
        fs::write(tools.join("kdig"), "").unwrap();
        let found = places.command("kdig");
        assert_eq!(Path::new(found.get_program()), tools.join("kdig").as_path());
        let said: Vec<_> = found.get_envs().collect();
        assert_eq!(said, [(OsStr::new("LD_LIBRARY_PATH"), Some(libraries.as_os_str()))]);
    }

    #[test]
    fn the_newest_knot_comes_before_that_of_the_release() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
        let newest = second.join(NEWEST_KNOT);
        for tree in [&first, &second, &newest] {
            fs::create_dir_all(tree.join("usr/sbin")).unwrap();
            fs::write(tree.join("usr/sbin/knotd"), "").unwrap();
        }
        fs::write(first.join("usr/sbin/named"), "").unwrap();
        let release = Places { unpacked: vec![first.clone(), second], path: Vec::new() };
        let found = |places: &Places, name: &str| places.find(name).unwrap().0;
        assert_eq!(found(&release, "knotd"), first.join("usr/sbin/knotd"));
        let all = release.with_newest_knot();
        assert_eq!(found(&all, "knotd"), newest.join("usr/sbin/knotd"));
        assert_eq!(found(&all, "named"), first.join("usr/sbin/named"), "what it does not have is where it was");
    }

    #[test]
    fn what_is_missing_is_said_with_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places { unpacked: Vec::new(), path: vec![dir.path().to_owned()] };
        symlink("/bin/sh", dir.path().join("knotd")).unwrap();
        // Is there, and cannot be run.
        fs::write(dir.path().join("knotc"), "").unwrap();
        places.check(&["knotd"]).unwrap();
        for (name, package) in [("knotc", "knot,"), ("kdig", "knot-dnsutils,"), ("ldns-verify-zone", "ldnsutils,")] {
            let said = places.check(&["knotd", name]).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name} is missing: install Debian's package {package}")), "{said}");
        }
    }
}
