//! What an agent would know from the same files.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use serde::Serialize;
use theta_rpki::{
    registry::{Registry, RegistryError},
    statements::{Statement, StatementError},
};

use super::{failure::Failure, files};

/// A file that counts for nothing.
#[derive(Debug, Serialize)]
pub(crate) struct Wrong {
    /// Which.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

/// The files of some folders.
#[derive(Debug)]
pub(crate) struct Found<T> {
    /// Those that count, with what is in them.
    pub(crate) good: Vec<(PathBuf, T)>,
    /// Those that do not.
    pub(crate) wrong: Vec<Wrong>,
}

/// Reads the registry's data.
pub(crate) fn registry(path: &Path) -> Result<Registry, Failure> {
    let wrong = |reason: RegistryError| Failure::Registry { path: path.to_owned(), reason };
    Registry::parse(&files::read(path)?).map_err(wrong)
}

/// Reads the files of these folders, one by one: a wrong one keeps nobody from reading the others.
pub(crate) fn read_all<T, E: Display>(
    folders: &[PathBuf],
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Found<T>, Failure> {
    let mut found = Found { good: Vec::new(), wrong: Vec::new() };
    for folder in folders {
        for path in files::list(folder)? {
            let text = files::read(&path).map_err(|error| error.to_string());
            match text.and_then(|text| read(&text).map_err(|error| error.to_string())) {
                Ok(good) => found.good.push((path, good)),
                Err(reason) => found.wrong.push(Wrong { file: path.display().to_string(), reason }),
            }
        }
    }
    Ok(found)
}

/// Reads a statement that counts, once it begins.
pub(crate) fn statement(text: &str, registry: &Registry) -> Result<Statement, StatementError> {
    let (statement, signatures) = Statement::parse(text)?;
    statement.check(registry, &signatures).map(|()| statement)
}

/// Reads the statements in these folders, each of which has a folder for each member, as an agent's has.
pub(crate) fn statements(
    folders: &[PathBuf],
    registry: &Registry,
    read: impl Fn(&str) -> Result<Statement, StatementError>,
) -> Result<Found<Statement>, Failure> {
    let mut found = Found { good: Vec::new(), wrong: Vec::new() };
    for folder in folders {
        let misplaced = |path: PathBuf| Wrong {
            file: path.display().to_string(),
            reason: "it is in no member's folder".to_owned(),
        };
        found.wrong.extend(files::list(folder)?.into_iter().map(misplaced));
        // Who has stated nothing has none.
        let of_members = registry.members.keys().map(|member| (member, folder.join(member)));
        for (member, own) in of_members.filter(|(_, own)| own.is_dir()) {
            let of_member = read_all(&[own], |text| match read(text)? {
                statement if statement.member == *member => Ok(statement),
                _ => Err(StatementError::Wrong("it is another member's than its folder is")),
            })?;
            found.good.extend(of_member.good);
            found.wrong.extend(of_member.wrong);
        }
    }
    Ok(found)
}

/// Checks a statement as an agent does, but for how many have signed it.
pub(crate) fn check_statement(text: &str, path: &Path, registry: &Registry) -> Result<(), Failure> {
    match statement(text, registry) {
        Ok(_) | Err(StatementError::Signatures { .. }) => Ok(()),
        Err(reason) => {
            let held = match &reason {
                StatementError::Overclaim { member, .. } => registry.members.get(member),
                _ => None,
            };
            Err(match held {
                Some(member) => Failure::Overclaim { reason, held: member.resources.to_string() },
                None => Failure::Statement { path: path.to_owned(), reason },
            })
        }
    }
}
