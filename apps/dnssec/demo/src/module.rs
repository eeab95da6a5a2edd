//! The PKCS#11 module of a name server: its configuration, and what Knot has to know of it.

use std::{fs, path::Path};

use theta::exit::Failure;
use theta_knot::config::signing;

use crate::agent::ZONE;

/// The pool of the zone's keys.
pub(crate) const POOL: &str = "zone";

/// Writes the module's configuration for a client into the server's folder, which is there, and has `knot.conf` made for an algorithm, both as
/// `theta pkcs11 config` prints them; `theta` runs a command with these words. Without a module it is the one beside this program. `more` are words
/// of the configuration's own.
pub(crate) fn configure(
    theta: impl Fn(&[&str]) -> Result<String, Failure>,
    (client, module): (&str, Option<&Path>),
    folder: &Path,
    algorithm: &str,
    more: &[&str],
) -> Result<String, Failure> {
    let absolute = |module: &Path| module.canonicalize().map_err(|error| Failure::reading(module, &error));
    let module = module.map(absolute).transpose()?;
    let module = module.as_ref().map(|module| module.to_string_lossy());
    let mut words = vec!["pkcs11", "config", "--client", client, "--pool", POOL];
    if let Some(module) = &module {
        words.extend(["--module", &**module]);
    }
    let file = folder.join("pkcs11.toml");
    fs::write(&file, theta(&[&words[..], more].concat())?).map_err(|error| Failure::writing(&file, &error))?;
    words.push("knot");
    Ok(signing(&theta(&words)?, ZONE, algorithm))
}
