//! Commands that other programs have.

use std::{env, ffi::OsString, io, os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use clap::Args;

use crate::exit::Failure;

/// All arguments after the name of a command of another program.
#[derive(Debug, Args)]
pub(crate) struct Elsewhere {
    /// Arguments of the other program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Elsewhere {
    /// Says in one line which program has the command.
    pub(crate) fn refuse(&self, command: &str, run: &str) -> Result<(), Failure> {
        Err(Failure::Usage(format!(
            "theta-{command} is a program of its own, not part of theta: in the sources, {run}{}",
            self.said()
        )))
    }

    /// Becomes the program `theta-COMMAND` that stands beside this one or, if none does, is in PATH.
    pub(crate) fn become_it(&self, command: &str, is_json: bool) -> Result<(), Failure> {
        let name = format!("theta-{command}");
        let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(&name)));
        let program = beside.filter(|program| program.is_file()).unwrap_or_else(|| PathBuf::from(&name));
        // Where this returns, the program did not start.
        let error = Command::new(&program).args(is_json.then_some("--json")).args(&self.words).exec();
        if error.kind() == io::ErrorKind::NotFound {
            return Err(Failure::Usage(format!(
                "{name}, a program of its own, is neither beside theta nor in PATH: in the sources, cargo run --release -p {name} --{}",
                self.said()
            )));
        }
        Err(Failure::Failed(format!("{}: {error}", program.display())))
    }

    fn said(&self) -> String {
        self.words.iter().map(|word| format!(" {}", word.display())).collect()
    }
}
