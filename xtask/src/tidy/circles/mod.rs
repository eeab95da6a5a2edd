//! No source files of different folders import each other, directly or in a circle of more: each folder can be read, and moved, without the others.
//!
//! What counts is where a thing is defined. Re-exports do not count: they say where something is and need nothing of it. So a file may
//! import from a folder whose `mod.rs` passes that file's own things on. Tests inside source files are left out.

mod names;
mod resolve;
mod search;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tree::{Tree, read};
use names::Names;
use resolve::{Crate, ModulePath};

/// Looks at each crate's sources by themselves, since crates have an order of their own (`arrows.rs`).
pub(super) fn check(tree: &Tree, findings: &mut Vec<String>) -> Result<(), String> {
    for manifest in tree.ending("Cargo.toml") {
        let sources = manifest.with_file_name("src");
        let mut files = BTreeMap::new();
        for path in tree.ending(".rs").filter(|path| path.starts_with(&sources)) {
            let shown = tree.shown(path);
            let names = Names::of(&read(path)?).map_err(|error| format!("{shown}: {error}"))?;
            let relative = path.strip_prefix(&sources).unwrap_or(path).to_owned();
            files.insert(relative, names);
        }
        let folder = tree.shown(&sources);
        findings.extend(circles(files).iter().map(|circle| finding(Path::new(&folder), circle)));
    }
    Ok(())
}

fn finding(folder: &Path, circle: &[PathBuf]) -> String {
    let names: Vec<_> = circle.iter().map(|path| folder.join(path).display().to_string()).collect();
    match names.as_slice() {
        [one, other] => format!(
            "{one} and {other} import each other from different folders: move what both need into a file of its own"
        ),
        [first, ..] => format!(
            "files of different folders import each other in a circle: {} -> {first}: move what one of them needs into a file of its own",
            names.join(" -> ")
        ),
        [] => String::new(),
    }
}

/// The circles of files in which some are in different folders, of a crate's files by their paths below `src`: see [`search::circles`].
fn circles(files: BTreeMap<PathBuf, Names>) -> Vec<Vec<PathBuf>> {
    let has_library = files.contains_key(Path::new("lib.rs"));
    let mut paths = BTreeMap::new();
    let mut modules = BTreeMap::new();
    for (path, names) in files {
        // A program beside a library is a crate of its own, of one file.
        if let Some(module) = module_of(&path).filter(|_| !has_library || path != Path::new("main.rs")) {
            paths.insert(module.clone(), path);
            modules.insert(module, names);
        }
    }
    let imports = Crate::new(modules).imports();
    let folder = |module: &ModulePath| paths.get(module).and_then(|path| path.parent());
    let circles = search::circles(&imports, |one, other| folder(one) != folder(other));
    let in_paths = |circle: &Vec<ModulePath>| {
        circle.iter().filter_map(|module| paths.get(module)).cloned().collect::<Vec<PathBuf>>()
    };
    circles.iter().map(in_paths).collect()
}

/// The module that a file below `src` is; `None` for programs in `src/bin`.
fn module_of(path: &Path) -> Option<ModulePath> {
    if path.starts_with("bin") {
        return None;
    }
    let mut module: ModulePath =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_root = module.len() == 1 && module.first().is_some_and(|name| name == "lib" || name == "main");
    if is_root || module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| (PathBuf::from(path), Names::of(text).unwrap())).collect();
        let shown =
            |circle: &Vec<PathBuf>| circle.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
        circles(files).iter().map(shown).collect()
    }

    #[test]
    fn files_of_two_folders_that_import_each_other_are_found() {
        let key = ("key/share.rs", "use crate::list::Suite;\npub struct Share(Suite);");
        let list = ("list/suite.rs", "pub enum Suite {}\nfn shares() -> Option<crate::key::share::Share> { None }");
        let mods = [("lib.rs", "mod key;\nmod list;"), ("key/mod.rs", "pub mod share;")];
        let list_mod = ("list/mod.rs", "mod suite;\npub use suite::Suite;");
        assert_eq!(found(&[key, list, mods[0], mods[1], list_mod]), ["key/share.rs list/suite.rs"]);
    }

    #[test]
    fn files_of_one_folder_may_import_each_other() {
        let one = ("one.rs", "use crate::two::Two;\npub struct One(Two);");
        let two = ("two.rs", "use super::one::One;\npub struct Two(Option<Box<One>>);");
        assert!(found(&[one, two, ("lib.rs", "mod one;\nmod two;")]).is_empty());
    }

    #[test]
    fn a_parent_and_its_child_are_in_two_folders() {
        let parent = ("node.rs", "mod state;\nuse state::State;\npub struct Node(State);");
        let child = ("node/state.rs", "pub struct State;\nimpl super::Node { fn halt(&self) {} }");
        assert_eq!(found(&[parent, child, ("lib.rs", "mod node;")]), ["node.rs node/state.rs"]);
    }

    #[test]
    fn re_exports_are_no_imports_but_their_use_is() {
        let child = ("node/state.rs", "pub struct State(super::Limit);");
        let passes_on = ("node/mod.rs", "mod state;\npub use state::State;\npub struct Limit;");
        assert!(found(&[passes_on, child, ("lib.rs", "mod node;")]).is_empty());
        let uses = ("node.rs", "mod state;\npub use state::State;\npub struct Limit;\nfn new() -> State { todo() }");
        assert_eq!(found(&[uses, child, ("lib.rs", "mod node;")]), ["node.rs node/state.rs"]);
    }

    #[test]
    fn renamed_grouped_and_starred_imports_are_followed_to_the_definition() {
        let base = [
            ("lib.rs", "mod a;\nmod b;"),
            ("a/mod.rs", "pub mod deep;"),
            ("b/mod.rs", "pub mod far;\npub use far::*;"),
        ];
        let far = ("b/far.rs", "use crate::a::{deep::{Deep as Other}};\npub struct Far(Other);");
        for import in
            ["use crate::b::{Far as Near};\npub struct Deep(Near);", "use crate::b::*;\npub struct Deep(Far);"]
        {
            let deep = ("a/deep.rs", import);
            assert_eq!(found(&[base[0], base[1], base[2], far, deep]), ["a/deep.rs b/far.rs"], "{import}");
        }
    }

    #[test]
    fn a_circle_of_three_files_is_found_and_said_in_its_order() {
        let transport =
            ("transport.rs", "use crate::mesh::Counters;\npub struct Status;\npub struct Transport(Counters);");
        let counters = ("mesh/counters.rs", "use super::link::Link;\npub struct Counters(Link);");
        let link = ("mesh/link.rs", "use crate::Status;\npub struct Link(Status);");
        let mods = [
            ("lib.rs", "pub mod mesh;\nmod transport;\npub use transport::Status;"),
            ("mesh/mod.rs", "mod counters;\nmod link;\npub use counters::Counters;"),
        ];
        let files = [transport, counters, link, mods[0], mods[1]];
        assert_eq!(found(&files), ["mesh/counters.rs mesh/link.rs transport.rs"]);
        let circle = ["mesh/counters.rs", "mesh/link.rs", "transport.rs"].map(PathBuf::from);
        let said = finding(Path::new("crates/network/src"), &circle);
        let order = "crates/network/src/mesh/link.rs -> crates/network/src/transport.rs -> crates/network/src/mesh/counters.rs: ";
        assert!(said.contains(order), "{said}");
        assert!(
            finding(Path::new("a"), &circle[1..]).starts_with("a/mesh/link.rs and a/transport.rs import each other")
        );
        // The status in a file of its own ends it.
        let status = ("status.rs", "pub struct Status;");
        let transport = ("transport.rs", "use crate::mesh::Counters;\npub struct Transport(Counters);");
        let root = ("lib.rs", "pub mod mesh;\nmod status;\nmod transport;\npub use status::Status;");
        assert!(found(&[transport, counters, link, status, root, mods[1]]).is_empty());
    }

    #[test]
    fn what_a_macro_names_counts() {
        let table = ("list/table.rs", "macro_rules! all { () => { $crate::key::Key } }");
        let key = ("key.rs", "use crate::list::table::all;\npub struct Key;");
        assert_eq!(found(&[table, key, ("lib.rs", "mod key;\nmod list;"), ("list/mod.rs", "mod table;")]).len(), 1);
    }

    #[test]
    fn tests_inside_files_and_other_crates_do_not_count() {
        let one = ("a/one.rs", "pub struct One;\n#[cfg(test)]\nmod tests { use crate::two::Two; }");
        let two = ("two.rs", "use crate::a::one::One;\nuse theta_groups::Two as Three;\npub struct Two(One, Three);");
        assert!(found(&[one, two, ("lib.rs", "mod a;\nmod two;"), ("a/mod.rs", "mod one;")]).is_empty());
    }
}
