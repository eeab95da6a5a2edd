//! What the demo works on.

use std::path::{Path, PathBuf};

use theta::{exit::Failure, files::Source};

/// The demo keeps it in memory, and the nodes get it whole to sign.
const LIMIT: usize = 16 << 20;

const BUILT_IN: &str = "\
What is known to one can be stolen from one.
What is shared among many, none of whom knows it, must be stolen from many.
";

/// A file's contents, or a built-in text.
pub(crate) struct Material {
    /// How to call it.
    pub(crate) name: String,
    /// The bytes.
    pub(crate) contents: Vec<u8>,
}

impl Material {
    /// The file that was named; or else README.md in this directory or one above; or else a text of our own.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        let found = file.map(Path::to_owned).or_else(readme);
        let Some(path) = found else {
            return Ok(Self { name: "a built-in text".to_owned(), contents: BUILT_IN.into() });
        };
        let contents = Source::open(&path)?.read_all(LIMIT, "choose a smaller file for the demo")?;
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name, contents })
    }

    /// A message that was never signed before: the contents, and which time this is.
    pub(crate) fn variant(&self, act: &str, round: u16) -> Vec<u8> {
        let mut message = self.contents.clone();
        message.extend_from_slice(format!("\n({act}, number {round})\n").as_bytes());
        message
    }
}

fn readme() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|dir| dir.join("README.md")).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_must_exist() {
        assert!(Material::load(Some(Path::new("/no/such/file"))).is_err());
    }

    #[test]
    fn variants_differ() {
        let material = Material { name: String::new(), contents: b"x".to_vec() };
        assert_ne!(material.variant("a", 1), material.variant("a", 2));
        assert_ne!(material.variant("a", 1), material.variant("b", 1));
    }
}
