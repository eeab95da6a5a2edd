//! Links between the project's own documents must lead to existing files.

use super::tree::{Tree, read};

pub(super) fn check(tree: &Tree, findings: &mut Vec<String>) -> Result<(), String> {
    for path in tree.ending(".md") {
        let shown = tree.shown(path);
        for (number, line) in read(path)?.lines().enumerate() {
            for target in targets(line) {
                let file = target.split('#').next().unwrap_or_default();
                let external = target.contains("://") || target.starts_with("mailto:") || file.is_empty();
                let folder = path.parent().unwrap_or(path);
                if !external && !folder.join(file).exists() {
                    findings.push(format!("{shown}:{}: the link to {file:?} leads nowhere", number + 1));
                }
            }
        }
    }
    Ok(())
}

/// The targets of the inline links of a line: `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::targets;

    #[test]
    fn finds_every_inline_link() {
        let found: Vec<_> = targets("see [a](A.md), [b](docs/b.md#part) and `code`").collect();
        assert_eq!(found, ["A.md", "docs/b.md#part"]);
    }
}
