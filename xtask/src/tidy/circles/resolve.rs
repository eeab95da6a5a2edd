//! From a path to the file that defines what it names.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Names, Parts};

/// A module: the names from the crate's root to it.
pub(super) type ModulePath = Vec<String>;

/// Re-exports that follow each other; more is a circle of them.
const DEEPEST: usize = 16;

/// The modules of a crate that are files.
pub(super) struct Crate {
    modules: BTreeMap<ModulePath, Names>,
}

impl Crate {
    pub(super) fn new(modules: BTreeMap<ModulePath, Names>) -> Self {
        Self { modules }
    }

    /// For each file the files that define what it uses.
    pub(super) fn imports(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let imports = |(module, names): (&ModulePath, &Names)| {
            let imported = names.uses.iter().filter(|import| !import.is_re_export).map(|import| &import.path);
            let paths = imported.chain(&names.paths);
            let mut files: BTreeSet<_> = paths.filter_map(|path| self.definition(module, path, 0)).collect();
            files.remove(module);
            (module.clone(), files)
        };
        self.modules.iter().map(imports).collect()
    }

    /// The file that defines what a path names, seen from a module; `None` for what is not of this crate, or is a whole module.
    fn definition(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (mut at, mut rest) = start(from, path)?;
        while let Some((name, behind)) = rest.split_first() {
            let here = self.modules.get(&at)?;
            if name == "*" {
                return Some(at);
            }
            let child: ModulePath = at.iter().chain([name]).cloned().collect();
            let is_module = self.modules.contains_key(&child);
            if is_module && !behind.is_empty() {
                (at, rest) = (child, behind);
                continue;
            }
            if here.defined.contains(name) {
                return Some(at);
            }
            if is_module || depth > DEEPEST {
                return None;
            }
            return self.imported(&at, here, (name, behind), depth);
        }
        None
    }

    /// The file that defines what a module has by an import.
    fn imported(
        &self,
        at: &ModulePath,
        here: &Names,
        (name, behind): (&String, &[String]),
        depth: usize,
    ) -> Option<ModulePath> {
        // An import of a name from a crate of that name leads nowhere in this one.
        let named = here.uses.iter().find(|import| import.name == *name && import.path.first() != Some(name));
        if let Some(import) = named {
            let whole: Parts = import.path.iter().chain(behind).cloned().collect();
            return self.definition(at, &whole, depth.saturating_add(1));
        }
        let all = here.uses.iter().filter(|import| import.name == "*");
        all.filter_map(|import| {
            let module = import.path.split_last().map(|(_, module)| module)?;
            let wanted: Parts = module.iter().chain([name]).cloned().collect();
            self.definition(at, &wanted, depth.saturating_add(1))
        })
        .next()
    }
}

/// Where a path begins, and what of it is left.
fn start<'a>(from: &[String], path: &'a [String]) -> Option<(ModulePath, &'a [String])> {
    let (first, mut rest) = path.split_first()?;
    match first.as_str() {
        "crate" => return Some((ModulePath::new(), rest)),
        "self" => return Some((from.to_vec(), rest)),
        "super" => {}
        _ => return Some((from.to_vec(), path)),
    }
    let mut at = from.to_vec();
    at.pop()?;
    while let Some((_, behind)) = rest.split_first().filter(|(next, _)| *next == "super") {
        at.pop()?;
        rest = behind;
    }
    Some((at, rest))
}
