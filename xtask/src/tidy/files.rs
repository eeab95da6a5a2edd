//! Sizes and names of files, and source files that are never compiled.

use std::{collections::BTreeMap, path::Path};

use super::tree::{Tree, read};

const MOST_LINES: usize = 800;
const MOST_SOURCES_A_FOLDER: usize = 12;
const VAGUE: [&str; 6] = ["utils", "util", "common", "manager", "helpers", "helper"];
/// Written in parts, so that the check does not find them in this file.
const UNFINISHED: [&str; 4] =
    [concat!("to", "do!("), concat!("unimpl", "emented!("), concat!("#[ig", "nore"), concat!("FIX", "ME")];

pub(super) fn check(tree: &Tree, findings: &mut Vec<String>) -> Result<(), String> {
    let mut folders: BTreeMap<&Path, usize> = BTreeMap::new();
    for path in tree.ending(".rs") {
        let shown = tree.shown(path);
        let text = read(path)?;
        let lines = text.lines().count();
        if lines > MOST_LINES {
            findings.push(format!("{shown}: {lines} lines, over {MOST_LINES}: split it by what it is about"));
        }
        for word in UNFINISHED.into_iter().filter(|word| text.contains(word)) {
            findings.push(format!("{shown}: contains {word:?}: finish it"));
        }
        if let Some(folder) = path.parent() {
            *folders.entry(folder).or_default() += 1;
        }
        check_name(path, &shown, findings);
        check_reached(path, &shown, findings)?;
    }
    for (folder, count) in folders {
        if count > MOST_SOURCES_A_FOLDER {
            let shown = tree.shown(folder);
            findings.push(format!(
                "{shown}: {count} source files, over {MOST_SOURCES_A_FOLDER}: give a part its own folder"
            ));
        }
    }
    Ok(())
}

fn check_name(path: &Path, shown: &str, findings: &mut Vec<String>) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if VAGUE.contains(&stem.as_ref()) {
        findings.push(format!("{shown}: the name {stem:?} says nothing: name it for what it does"));
    }
}

/// Checks that a module file is declared by its parent module; otherwise cargo never compiles it.
fn check_reached(path: &Path, shown: &str, findings: &mut Vec<String>) -> Result<(), String> {
    let in_sources = path.ancestors().skip(1).any(|folder| folder.ends_with("src"));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if !in_sources || matches!(stem.as_str(), "lib" | "main") || path.parent().is_some_and(|p| p.ends_with("bin")) {
        return Ok(());
    }
    let Some(folder) = path.parent() else { return Ok(()) };
    let (module, home) = if stem == "mod" {
        (folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), folder.parent().unwrap_or(folder))
    } else {
        (stem, folder)
    };
    let beside = home.with_extension("rs");
    let parents = [home.join("mod.rs"), home.join("lib.rs"), home.join("main.rs"), beside];
    for parent in parents.iter().filter(|parent| parent.exists() && *parent != path) {
        let text = read(parent)?;
        let declares = |line: &str| {
            let line = line.trim().trim_end_matches(" {");
            line.strip_suffix(';').is_some_and(|line| line.ends_with(&format!("mod {module}")))
        };
        if text.lines().any(declares) {
            return Ok(());
        }
    }
    findings.push(format!("{shown}: no parent module declares it: it is never compiled"));
    Ok(())
}
