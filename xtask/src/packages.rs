//! Debian's packages, unpacked into a folder without any rights, and without a change to the system's own.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Libraries that few systems have, by how their packages' names begin.
const RARE: [&str; 20] = [
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
    "libjemalloc",
    "libjson-c",
    "libmaxminddb",
    "libnghttp2",
    "libuv1",
    "libevent",
    "libpython3",
    "libwrap",
];

/// These packages, and those of their libraries that few systems have: their names differ by release.
pub(crate) fn with_libraries_of(packages: &[&str]) -> Vec<String> {
    let packages: Vec<String> = packages.iter().copied().map(str::to_owned).collect();
    with_libraries_by(&packages, &[], is_rare)
}

fn is_rare(name: &str) -> bool {
    RARE.iter().any(|rare| name.starts_with(rare))
}

/// The same by the lists of packages that these options of apt name, with the libraries that are wanted.
fn with_libraries_by(packages: &[String], options: &[String], is_wanted: fn(&str) -> bool) -> Vec<String> {
    let mut all = packages.to_vec();
    let mut from = 0;
    // A library may need others.
    while from < all.len() {
        let depends = Command::new("apt-cache")
            .args(options)
            .args(["depends", "--important"])
            .args(all.get(from..).unwrap_or_default())
            .output();
        from = all.len();
        let told = depends.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        for name in told.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")) {
            // A package that these lists do not have is in angle brackets.
            let name = name.trim_matches(['<', '>']);
            if is_wanted(name) && !all.iter().any(|known| known == name) {
                all.push(name.to_owned());
            }
        }
    }
    all
}

/// Unpacks packages with libraries that were found.
pub(crate) fn unpack_all(kept: &Path, packages: &[String]) -> Result<(), String> {
    unpack(kept, &packages.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Unpacks packages; those that cannot be had are left out.
pub(crate) fn unpack(kept: &Path, packages: &[&str]) -> Result<(), String> {
    fs::create_dir_all(kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !download(kept, &[], package)).collect();
    if !missing.is_empty() {
        // A machine that is new has no lists of packages; renewing them takes rights, and is tried only then.
        let renewed = quietly(kept, "apt-get", &["update"]);
        let missing = missing.into_iter().filter(|package| !(renewed && download(kept, &[], package)));
        let missing: Vec<&str> = missing.collect();
        if !missing.is_empty() && lists(kept, backports) {
            for package in missing {
                download(kept, &private(kept), package);
            }
        }
    }
    unpack_downloaded(kept)
}

/// Unpacks packages with their libraries: from Debian's backports if the release has too old a version of the first, and nothing where
/// these have none.
pub(crate) fn unpack_newer(kept: &Path, packages: &[&str], is_new: impl Fn(&str) -> bool) -> Result<(), String> {
    fs::create_dir_all(kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let has_new = || packages.first().and_then(|package| version(package)).is_some_and(|version| is_new(&version));
    if has_new() || (quietly(kept, "apt-get", &["update"]) && has_new()) {
        return unpack_all(kept, &with_libraries_of(packages));
    }
    if !lists(kept, backports) {
        return Ok(());
    }
    let private = private(kept);
    for package in packages {
        download(kept, &private, package);
    }
    // Newer versions need other libraries, which may be the release's.
    let mut libraries =
        with_libraries_by(&with_libraries_by(&with_libraries_of(packages), &private, is_rare), &[], is_rare);
    libraries.retain(|name| !packages.contains(&name.as_str()));
    unpack_all(kept, &libraries)
}

/// Unpacks programs of Debian's stable release with all of their libraries, that of C among them, below this folder, and scripts into it that start
/// these programs with them, each in a folder of `usr`: so they run on an older release, too. Nothing where that release cannot be had.
pub(crate) fn unpack_stable(kept: &Path, packages: &[&str], programs: &[(&str, &str)]) -> Result<(), String> {
    let tree = kept.join("stable");
    fs::create_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    if !lists(&tree, |_| "stable".to_owned()) {
        return Ok(());
    }
    let private = private(&tree);
    let packages: Vec<String> = packages.iter().copied().map(str::to_owned).collect();
    let is_library = |name: &str| ["lib", "zlib"].iter().any(|start| name.starts_with(start));
    for package in with_libraries_by(&packages, &private, is_library) {
        download(&tree, &private, &package);
    }
    unpack_downloaded(&tree)?;
    let Some(loader) = loader(&tree) else { return Ok(()) };
    for (folder, name) in programs {
        // Which of the two folders a program is in differs by release.
        let places = ["usr/sbin", "usr/bin"].map(|place| format!("{place}/{name}"));
        if let Some(program) = places.iter().find(|program| tree.join(program).is_file()) {
            let script = kept.join("usr").join(folder).join(name);
            write_start(&script, program, &loader).map_err(|error| format!("{}: {error}", script.display()))?;
        }
    }
    Ok(())
}

/// The loader of programs among what was unpacked here, by its path from here.
fn loader(tree: &Path) -> Option<PathBuf> {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = files(&tree.join("usr/lib")).filter(|folder| folder.is_dir());
    let is_loader = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ld-linux") && name.contains(".so.")
    };
    let found = folders.flat_map(|folder| files(&folder).filter(is_loader).collect::<Vec<_>>()).next()?;
    found.strip_prefix(tree).ok().map(Path::to_owned)
}

/// Writes a script that starts a program of the tree beside `usr`, wherever both are.
fn write_start(script: &Path, program: &str, loader: &Path) -> io::Result<()> {
    let libraries = loader.parent().unwrap_or(loader).display();
    let text = format!(
        "#!/bin/sh\ntree=${{0%/*}}/../../stable\n\
         exec \"$tree/{}\" --library-path \"$tree/{libraries}\" \"$tree/{program}\" \"$@\"\n",
        loader.display()
    );
    fs::create_dir_all(script.parent().unwrap_or(script))?;
    fs::write(script, text)?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755))
}

/// The version of a package that the system's release has, without its epoch.
fn version(package: &str) -> Option<String> {
    let shown = Command::new("apt-cache").args(["show", "--no-all-versions", package]).output().ok()?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let version = shown.lines().find_map(|line| line.strip_prefix("Version: "))?;
    Some(version.split_once(':').map_or(version, |(_, version)| version).to_owned())
}

/// Runs a program in this folder; whether it did what it should.
fn quietly(kept: &Path, program: &str, words: &[&str]) -> bool {
    let done = Command::new(program).args(words).current_dir(kept).stdin(Stdio::null()).output();
    done.is_ok_and(|output| output.status.success())
}

/// Gets a package as a file, by the lists that these options of apt name; whether that worked.
fn download(kept: &Path, options: &[String], package: &str) -> bool {
    let options = options.iter().map(String::as_str);
    quietly(kept, "apt-get", &options.chain(["download", package]).collect::<Vec<_>>())
}

fn unpack_downloaded(kept: &Path) -> Result<(), String> {
    let files = fs::read_dir(kept).ok().into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    for package in files.filter(|path| path.extension().is_some_and(|ending| ending == "deb")) {
        let shown = package.to_string_lossy().into_owned();
        if !quietly(kept, "dpkg-deb", &["-x", &shown, "."]) {
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

/// What Debian's backports for a release are called.
fn backports(release: &str) -> String {
    format!("{release}-backports")
}

/// Gets the lists of another part of Debian, by the system's release, from where the system has its packages; whether that worked.
fn lists(kept: &Path, suite: fn(&str) -> String) -> bool {
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
        plain.then(|| format!("deb {signed}{address} {} main\n", suite(release)))
    });
    let apt = kept.join("apt");
    let made =
        ["lists/partial", "cache/archives/partial"].iter().all(|folder| fs::create_dir_all(apt.join(folder)).is_ok());
    let Some(line) = lines.next().filter(|_| made) else { return false };
    let update = || {
        let private = private(kept);
        quietly(kept, "apt-get", &private.iter().map(String::as_str).chain(["update"]).collect::<Vec<_>>())
    };
    fs::write(apt.join("sources.list"), line).is_ok() && update()
}
