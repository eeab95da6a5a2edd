//! `theta-demo demo --chain`: hands over to `theta-chain`, which is a program of its own so that nobody builds a chain to see the nodes.

use std::{os::unix::process::CommandExt as _, path::Path, process::Command};

use theta::{
    exit::{Failure, reason},
    output::Output,
};
use theta_cluster::this_program;

const HOW: &str = "build it (cargo build --release -p theta-chain), or let cargo xtask chain build it and CometBFT";

pub(super) fn run(dir: Option<&Path>, output: Output) -> Result<(), Failure> {
    let program = this_program()?.with_file_name("theta-chain");
    if !program.is_file() {
        return Err(Failure::Usage(format!("{} is not there: {HOW}", program.display())));
    }
    let mut command = Command::new(&program);
    command.arg("demo").args(output.json().then_some("--json"));
    command.args(dir.map(|dir| [Path::new("--dir"), dir]).into_iter().flatten());
    // Returns only if it fails: this process becomes that program.
    let error = command.exec();
    Err(Failure::Failed(format!("{} does not start: {}", program.display(), reason(&error))))
}
