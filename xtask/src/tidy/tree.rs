//! The files that are looked at.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The project's files, except what git or cargo has made.
pub(super) struct Tree {
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl Tree {
    /// All below a folder.
    pub(super) fn of(root: &Path) -> Result<Self, String> {
        let mut tree = Self { root: root.to_owned(), files: Vec::new() };
        walk(root, &mut tree.files)?;
        tree.files.sort();
        Ok(tree)
    }

    /// How many files there are.
    pub(super) const fn len(&self) -> usize {
        self.files.len()
    }

    /// The files with this ending.
    pub(super) fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a Path> {
        self.files.iter().map(PathBuf::as_path).filter(move |path| path.to_string_lossy().ends_with(ending))
    }

    /// A path relative to the workspace's folder, for messages.
    pub(super) fn shown(&self, path: &Path) -> String {
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

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
