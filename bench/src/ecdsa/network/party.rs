//! One party: a thread that computes, and speaks with the others.

use std::{
    collections::BTreeMap,
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
    /// It has the result of the program of this number.
    Finished(u32, Record),
}

/// Does what tasks it is given, at once if it has several, until there are no more.
pub(super) fn run(config: MeshConfig, tasks: mpsc::UnboundedReceiver<Task>, say: &dyn Fn(Said)) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
    runtime.block_on(async {
        let (mesh, inbound) = Mesh::start(config).map_err(Failure::internal)?;
        while mesh.status().iter().any(|peer| peer.state != PeerState::Connected) {
            time::sleep(Duration::from_millis(1)).await;
        }
        let (running, early) = (BTreeMap::new(), Vec::new());
        let mut party = Party { mesh, inbound, tasks, running, latest: 0, early, rng: random::generator()? };
        say(Said::Connected);
        while let Some((program, record)) = party.next().await? {
            say(Said::Finished(program, record));
        }
        party.mesh.shutdown();
        Ok(())
    })
}

struct Party {
    mesh: Arc<Mesh>,
    inbound: mpsc::Receiver<Inbound>,
    tasks: mpsc::UnboundedReceiver<Task>,
    /// Programs that have begun and not ended, by their numbers.
    running: BTreeMap<u32, Job>,
    /// The last program that has begun.
    latest: u32,
    /// Messages of programs that this party has not begun.
    early: Vec<(u32, Message)>,
    rng: ChaCha20Rng,
}

impl Party {
    /// Runs programs until one ends; `None` if nobody waits for any more.
    async fn next(&mut self) -> Result<Option<(u32, Record)>, Failure> {
        loop {
            let finished = self.running.iter().find(|(_, job)| job.is_finished()).map(|(program, _)| *program);
            if let Some((program, job)) = finished.and_then(|program| Some((program, self.running.remove(&program)?))) {
                job.meter().pause();
                return Ok(Some((program, job.meter().record())));
            }
            tokio::select! {
                inbound = self.inbound.recv() => {
                    let (program, message) = self.read(inbound)?;
                    if program > self.latest {
                        self.early.push((program, message));
                    } else {
                        self.take(program, message).await?;
                    }
                }
                task = self.tasks.recv() => match task {
                    Some(task) => self.begin(task).await?,
                    None => return Ok(None),
                },
            }
        }
    }

    /// Begins a program.
    async fn begin(&mut self, Task { program, epoch, mut job }: Task) -> Result<(), Failure> {
        job.meter().begin(Clock::Wall(epoch));
        let messages = job.start(&mut self.rng)?;
        self.running.insert(program, job);
        self.latest = program;
        self.send(program, messages).await?;
        let (now, later) = mem::take(&mut self.early).into_iter().partition(|(of, _)| *of == program);
        self.early = later;
        let now: Vec<(u32, Message)> = now;
        for (_, message) in now {
            self.take(program, message).await?;
        }
        Ok(())
    }

    /// Takes a message of a program that has begun; one that has ended needs none.
    async fn take(&mut self, program: u32, message: Message) -> Result<(), Failure> {
        let Some(job) = self.running.get_mut(&program) else { return Ok(()) };
        let messages = job.take(message, &mut self.rng)?;
        self.send(program, messages).await
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
