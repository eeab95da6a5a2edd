//! Names of suites, as experiments and scenarios give them.

use theta::exit::Failure;
use theta_schemes::Suite;

/// The suites that patterns select: `all`, a full name, or a prefix followed by `*`.
pub(crate) fn matching(patterns: &[String]) -> Result<Vec<Suite>, Failure> {
    let mut chosen = Vec::new();
    for pattern in patterns {
        let prefix = if pattern == "all" { Some("") } else { pattern.strip_suffix('*') };
        let matching: Vec<Suite> = match prefix {
            Some(prefix) => Suite::ALL.into_iter().filter(|suite| suite.name().starts_with(prefix)).collect(),
            None => vec![pattern.parse::<Suite>().map_err(|error| Failure::Usage(error.to_string()))?],
        };
        if matching.is_empty() {
            return Err(Failure::Usage(format!("no suite's name begins with {:?}", prefix.unwrap_or_default())));
        }
        chosen.extend(matching.into_iter().filter(|suite| !chosen.contains(suite)).collect::<Vec<_>>());
    }
    Ok(chosen)
}
