//! The house rules as a check: each finding is one line that says where it is, what is wrong and what would be right.

mod arrows;
mod circles;
mod clock;
mod files;
mod gates;
mod links;
mod tree;

use std::path::Path;

use tree::Tree;

/// Runs every rule and lists all findings at once.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let tree = Tree::of(root)?;
    let mut findings = Vec::new();
    arrows::check(&tree, &mut findings)?;
    circles::check(&tree, &mut findings)?;
    clock::check(&tree, &mut findings)?;
    files::check(&tree, &mut findings)?;
    gates::check(&tree, &mut findings)?;
    links::check(&tree, &mut findings)?;
    if findings.is_empty() {
        println!(
            "tidy: {} files, arrows, circles, clock, sizes, names, modules, gates and links are in order",
            tree.len()
        );
        return Ok(());
    }
    for finding in &findings {
        println!("tidy: {finding}");
    }
    Err(format!("{} house rules broken", findings.len()))
}
