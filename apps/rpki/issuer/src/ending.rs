//! How an issuer that goes on is told to end: by SIGTERM, as the system's manager of services sends it. A run that has begun is done first, so that nothing stays half
//! asked for; between two runs it ends at once.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

/// Hears of it.
pub(crate) struct Ending(mpsc::Receiver<()>);

impl Ending {
    /// Watches from now on, in a thread of its own: a run waits for nodes and for the disk.
    pub(crate) fn watch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut terminate = {
            let _inside = runtime.enter();
            signal(SignalKind::terminate())?
        };
        let (told, hears) = mpsc::channel();
        let wait = move || {
            runtime.block_on(terminate.recv());
            // Who does not listen any more has ended.
            let _ = told.send(());
        };
        thread::Builder::new().name("ending".to_owned()).spawn(wait)?;
        Ok(Self(hears))
    }

    /// Waits so long, or until it is told; whether it is.
    pub(crate) fn comes_within(&self, pause: Duration) -> bool {
        match self.0.recv_timeout(pause) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            // Nothing tells it any more.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(pause);
                false
            }
        }
    }
}
