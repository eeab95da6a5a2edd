//! What a name server is told: its `knot.conf`.

use std::path::Path;

/// Its address, log and files; the zones' own come after it. What it is told it may take a minute for: a change of a zone of 100,000 names takes more
/// than the five seconds that it has otherwise.
pub(crate) fn base(folder: &Path, port: u16) -> String {
    let path = folder.display();
    format!(
        "server:\n  rundir: \"{path}/run\"\n  listen: 127.0.0.1@{port}\n\
         control:\n  timeout: 60\n\
         log:\n  - target: \"{path}/knot.log\"\n    any: info\n\
         database:\n  storage: \"{path}/db\"\n\
         template:\n  - id: default\n    storage: \"{path}/zones\"\n    file: \"%s.zone\"\n"
    )
}

/// Keystore, policy and zone as `theta pkcs11 config knot` prints them, below its line for people, for a zone and an algorithm, after which other
/// lines of the policy may come. Times are such that a change of keys lasts seconds.
#[must_use]
pub fn signing(printed: &str, zone: &str, algorithm: &str) -> String {
    let lines = printed.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
    let times = format!("algorithm: {algorithm}\n    dnskey-ttl: 1\n    zone-max-ttl: 1\n    propagation-delay: 1");
    let text = lines.collect::<Vec<_>>().join("\n").replace("algorithm: ed25519", &times).replace("ZONE", zone);
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_becomes_a_configuration() {
        let printed = "Knot DNS: knot.conf.\n  keystore:\n    - id: threshold\n  policy:\n    - id: threshold\n      \
                       algorithm: ed25519\n  zone:\n    - domain: ZONE\n\n";
        assert_eq!(
            signing(printed, "example.", "ecdsap256sha256\n    nsec3: on"),
            "keystore:\n  - id: threshold\npolicy:\n  - id: threshold\n    algorithm: ecdsap256sha256\n    nsec3: on\n    \
             dnskey-ttl: 1\n    zone-max-ttl: 1\n    propagation-delay: 1\nzone:\n  - domain: example.\n\n"
        );
    }
}
