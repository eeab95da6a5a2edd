//! Circles in what files import.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::resolve::ModulePath;

/// For each file the files that it imports from.
pub(super) type Imports = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// The circles that are over folders: in each some file imports one that is `apart` from it. Each begins with its least file, and each of its files
/// imports the next one, the last the first. The shortest come first; one that has an import in common with one before is left out, since it may be
/// gone with that. So there are none if, and only if, all files that import each other in any number of steps are in one folder.
pub(super) fn circles(imports: &Imports, apart: impl Fn(&ModulePath, &ModulePath) -> bool) -> Vec<Vec<ModulePath>> {
    let mut found = BTreeSet::new();
    for (one, imported) in imports {
        for other in imported.iter().filter(|other| apart(one, other)) {
            if let Some(way) = shortest_way(imports, other, one) {
                let circle = from_the_least(way);
                found.insert((circle.len(), circle));
            }
        }
    }
    let mut listed = BTreeSet::new();
    let mut circles = Vec::new();
    for (_, circle) in found {
        let imports: Vec<_> = circle.iter().zip(circle.iter().cycle().skip(1)).collect();
        if imports.iter().all(|(from, to)| !listed.contains(&((*from).clone(), (*to).clone()))) {
            listed.extend(imports.into_iter().map(|(from, to)| (from.clone(), to.clone())));
            circles.push(circle);
        }
    }
    circles
}

/// The files by which one imports another in as few steps as possible, both included; `None` if it does not.
fn shortest_way(imports: &Imports, from: &ModulePath, to: &ModulePath) -> Option<Vec<ModulePath>> {
    let mut before: BTreeMap<&ModulePath, Option<&ModulePath>> = BTreeMap::from([(from, None)]);
    let mut waiting = VecDeque::from([from]);
    while let Some(at) = waiting.pop_front() {
        if at == to {
            let mut way: Vec<_> = std::iter::successors(Some(at), |at| *before.get(*at)?).cloned().collect();
            way.reverse();
            return Some(way);
        }
        for next in imports.get(at).into_iter().flatten() {
            before.entry(next).or_insert_with(|| {
                waiting.push_back(next);
                Some(at)
            });
        }
    }
    None
}

fn from_the_least(mut circle: Vec<ModulePath>) -> Vec<ModulePath> {
    let least = circle.iter().min().and_then(|least| circle.iter().position(|file| file == least));
    circle.rotate_left(least.unwrap_or_default());
    circle
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files `a/x` by the folder and their names, and what they import: "a/x b/y" for one import.
    fn found(imports: &[&str]) -> Vec<String> {
        let file = |text: &str| text.split('/').map(str::to_owned).collect::<ModulePath>();
        let mut all = Imports::new();
        for import in imports {
            let (from, to) = import.split_once(' ').unwrap();
            all.entry(file(from)).or_default().insert(file(to));
            all.entry(file(to)).or_default();
        }
        let circles = circles(&all, |one, other| one.first() != other.first());
        let shown = |circle: &Vec<ModulePath>| circle.iter().map(|file| file.join("/")).collect::<Vec<_>>().join(" ");
        circles.iter().map(shown).collect()
    }

    #[test]
    fn circles_of_any_length_are_found_once_from_their_least_file() {
        assert_eq!(found(&["b/y a/x", "a/x b/y"]), ["a/x b/y"]);
        assert_eq!(found(&["c/z a/x", "a/x b/y", "b/y c/z"]), ["a/x b/y c/z"]);
        // Two of four files are in one folder.
        assert_eq!(found(&["b/y b/z", "b/z a/w", "a/w a/x", "a/x b/y"]), ["a/w a/x b/y b/z"]);
    }

    #[test]
    fn ways_without_return_and_circles_in_one_folder_are_none() {
        assert!(found(&["a/x b/y", "b/y c/z", "a/x c/z"]).is_empty());
        assert!(found(&["a/x a/y", "a/y a/z", "a/z a/x", "a/z b/w"]).is_empty());
    }

    #[test]
    fn the_shortest_circle_comes_first_and_stands_for_those_that_share_an_import() {
        let pair = ["a/x b/y", "b/y a/x"];
        let longer = ["b/y c/z", "c/z a/x"];
        assert_eq!(found(&[&pair[..], &longer].concat()), ["a/x b/y"]);
        let other = ["c/w d/v", "d/v c/w"];
        assert_eq!(found(&[&pair[..], &longer, &other].concat()), ["a/x b/y", "c/w d/v"]);
    }
}
