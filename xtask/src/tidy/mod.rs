//! The house rules as a check: each finding is one line that says where it is, what is wrong and what would be right.

mod arrows;
mod files;
mod gates;
mod links;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Runs every rule and lists all findings at once.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut tree = Tree { root: root.to_owned(), files: Vec::new() };
    walk(root, &mut tree.files)?;
    tree.files.sort();
    let mut findings = Vec::new();
    arrows::check(&tree, &mut findings)?;
    files::check(&tree, &mut findings)?;
    gates::check(&tree, &mut findings)?;
    links::check(&tree, &mut findings)?;
    if findings.is_empty() {
        println!("tidy: {} files, arrows, sizes, names, modules, gates and links are in order", tree.files.len());
        return Ok(());
    }
    for finding in &findings {
        println!("tidy: {finding}");
    }
    Err(format!("{} house rules broken", findings.len()))
}

/// The project's files, except what git or cargo has made.
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl Tree {
    /// The files with this ending.
    fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a Path> {
        self.files.iter().map(PathBuf::as_path).filter(move |path| path.to_string_lossy().ends_with(ending))
    }

    /// A path relative to the workspace's folder, for messages.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            // Generated code is judged by its sources.
            if !matches!(name.as_str(), "target" | ".git" | "node_modules" | "generated") {
                walk(&path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
