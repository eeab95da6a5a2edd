//! One party: a thread that computes, and speaks with the others.

use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use rand_chacha::ChaCha20Rng;
use theta::{exit::Failure, random};
use theta_network::{
    Inbound, PeerState, Transport,
    mesh::{Mesh, MeshConfig},
};
use theta_rounds::PartyId;
use tokio::{runtime, sync::mpsc, task, time};

use super::envelope;
use crate::ecdsa::{
    job::{Job, Message},
    phase::{Clock, Record},
};

/// A program to run.
pub(super) struct Task {
    /// Its number: programs count from 1.
    pub(super) program: u32,
    /// The beginning of time, for all parties.
    pub(super) epoch: Instant,
    pub(super) job: Job,
}

/// What a party tells whoever gives it tasks.
pub(super) enum Said {
    /// It is connected to all others.
    Connected,
    /// It has the result of the task.
    Finished(Record),
}

/// Does one task after the other until there are no more.
pub(super) fn run(config: MeshConfig, tasks: mpsc::UnboundedReceiver<Task>, say: &dyn Fn(Said)) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
    runtime.block_on(async {
        let (mesh, inbound) = Mesh::start(config).map_err(Failure::internal)?;
        while mesh.status().iter().any(|peer| peer.state != PeerState::Connected) {
            time::sleep(Duration::from_millis(1)).await;
        }
        let mut party = Party { mesh, inbound, tasks, early: Vec::new(), rng: random::generator()? };
        say(Said::Connected);
        while let Some(task) = party.tasks.recv().await {
            match party.run(task).await? {
                Some(record) => say(Said::Finished(record)),
                None => break,
            }
        }
        party.mesh.shutdown();
        Ok(())
    })
}

struct Party {
    mesh: Arc<Mesh>,
    inbound: mpsc::Receiver<Inbound>,
    tasks: mpsc::UnboundedReceiver<Task>,
    /// Messages of programs that this party has not begun.
    early: Vec<(u32, Message)>,
    rng: ChaCha20Rng,
}

impl Party {
    /// Runs a program to its end; `None` if nobody waits for it any more.
    async fn run(&mut self, Task { program, epoch, mut job }: Task) -> Result<Option<Record>, Failure> {
        job.meter().begin(Clock::Wall(epoch));
        let messages = job.start(&mut self.rng)?;
        self.send(program, messages).await?;
        let (now, later) = mem::take(&mut self.early).into_iter().partition(|(of, _)| *of == program);
        self.early = later;
        let mut waiting: Vec<(u32, Message)> = now;
        while !job.is_finished() {
            let (of, message) = match waiting.pop() {
                Some(message) => message,
                None => tokio::select! {
                    inbound = self.inbound.recv() => self.read(inbound)?,
                    // There is no other task before this one is finished: whoever gave it has ended.
                    _ = self.tasks.recv() => return Ok(None),
                },
            };
            if of > program {
                self.early.push((of, message));
            } else if of == program {
                let messages = job.take(message, &mut self.rng)?;
                self.send(program, messages).await?;
            }
        }
        job.meter().pause();
        Ok(Some(job.meter().record()))
    }

    /// Sends, and lets what is sent leave.
    async fn send(&self, program: u32, messages: Vec<Message>) -> Result<(), Failure> {
        let is_any = !messages.is_empty();
        for message in messages {
            let sealed = envelope::seal(program, message.slot, &message.payload);
            self.mesh.send(message.to.node(), sealed).map_err(Failure::internal)?;
        }
        if is_any {
            task::yield_now().await;
        }
        Ok(())
    }

    fn read(&self, inbound: Option<Inbound>) -> Result<(u32, Message), Failure> {
        let Inbound { from, bytes, .. } = inbound.ok_or_else(|| Failure::internal("the mesh has stopped"))?;
        let (from, to) = (PartyId::of_node(from), PartyId::of_node(self.mesh.local()));
        let opened = envelope::open(bytes).ok_or_else(|| Failure::internal("a message without a slot"))?;
        let (program, slot, payload) = opened;
        Ok((program, Message { from, to, slot, payload }))
    }
}
