//! The process of an operator's agent.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use theta::exit::{Failure, reason};

use crate::agent::SOCKET;

/// The agent of one operator. A name that no typing error comes near to, so that it is never suggested.
pub(crate) const AGENT: &str = "_x_agent";

/// It is killed when this is dropped, and ends with this process, however that ends.
pub(crate) struct AgentProcess {
    child: Child,
    dir: PathBuf,
}

impl AgentProcess {
    /// Starts it with the files of its operator's directory. `program` is this program.
    pub(crate) fn start(program: &Path, dir: &Path) -> Result<Self, Failure> {
        let socket = dir.join(SOCKET);
        // One that was killed has left it.
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Failure::writing(&socket, &error)),
            _ => {}
        }
        let log = log(dir);
        let opened = File::options().create(true).append(true).open(&log);
        let opened = opened.map_err(|error| Failure::writing(&log, &error))?;
        let mut agent = Command::new(program);
        agent.arg(AGENT).arg("--dir").arg(dir);
        // It ends when its standard input does, and that when this process ends.
        agent.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(opened);
        let not_started =
            |error: io::Error| Failure::Failed(format!("{} does not start: {}", program.display(), reason(&error)));
        Ok(Self { child: agent.spawn().map_err(not_started)?, dir: dir.to_owned() })
    }

    /// Whether the node can ask it.
    pub(crate) fn is_up(&self) -> bool {
        self.dir.join(SOCKET).exists()
    }

    /// Why nothing can go on if it is not after a while.
    pub(crate) fn is_not_up(&self) -> Failure {
        Failure::NoAnswer(format!("an operator's agent does not start: see {}", log(&self.dir).display()))
    }

    /// The process's id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // Nothing can be done about one that has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it says, in its operator's directory.
fn log(dir: &Path) -> PathBuf {
    dir.join("agent.log")
}
