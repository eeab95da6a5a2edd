//! Demonstrations that are programs of their own, so that nobody builds a chain or a name server's module to see the nodes.

use std::{os::unix::process::CommandExt as _, path::Path, process::Command};

use theta::{
    exit::{Failure, reason},
    output::Output,
};
use theta_cluster::this_program;

/// One of them.
pub(super) struct Other {
    program: &'static str,
    /// How people get it.
    how: &'static str,
}

/// `theta-demo demo --chain`.
pub(super) const CHAIN: Other = Other {
    program: "theta-chain",
    how: "build it (cargo build --release -p theta-chain), or let cargo xtask chain build it and CometBFT",
};

/// `theta-demo demo --dns`.
pub(super) const DNS: Other = Other {
    program: "theta-dnssec-demo",
    how: "build it (cargo build --release -p theta-dnssec-demo -p theta-pkcs11), or let cargo xtask dns build it and unpack Knot DNS",
};

/// `theta-demo demo --rpki`.
pub(super) const RPKI: Other = Other {
    program: "theta-rpki-demo",
    how: "build it (cargo build --release -p theta-rpki-demo), or let cargo xtask rpki build it and unpack rpki-client",
};

impl Other {
    /// Hands over to it.
    pub(super) fn run(&self, dir: Option<&Path>, output: Output) -> Result<(), Failure> {
        let program = this_program()?.with_file_name(self.program);
        if !program.is_file() {
            return Err(Failure::Usage(format!("{} is not there: {}", program.display(), self.how)));
        }
        let mut command = Command::new(&program);
        command.arg("demo").args(output.json().then_some("--json"));
        command.args(dir.map(|dir| [Path::new("--dir"), dir]).into_iter().flatten());
        // Returns only if it fails: this process becomes that program.
        let error = command.exec();
        Err(Failure::Failed(format!("{} does not start: {}", program.display(), reason(&error))))
    }
}
