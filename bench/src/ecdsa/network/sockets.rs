//! Parties that are threads of this process, each with a mesh of the product: real sockets and TLS, over loopback or between networks that are far from each
//! other.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    sync::mpsc as sync,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use theta::exit::Failure;
use theta_network::{
    Identity,
    mesh::{Listen, MeshConfig, MeshLimits, MeshPeer},
};
use theta_sharing::Threshold;
use tokio::sync::mpsc;

use super::party::{self, Said, Task};
use crate::{
    ecdsa::{
        job::{Job, Network},
        phase::Record,
    },
    wan::Reach,
};

/// Nothing here takes a party so long, unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(600);

/// A group of such parties. They end with it.
pub(in crate::ecdsa) struct Sockets {
    tasks: Vec<mpsc::UnboundedSender<Task>>,
    said: sync::Receiver<(usize, Result<Said, Failure>)>,
    threads: Vec<JoinHandle<()>>,
    epoch: Instant,
    programs: u32,
    /// Where the parties are, for as long as they are.
    _reach: Reach,
}

impl Sockets {
    /// Starts the parties, and waits until each is connected to each.
    pub(in crate::ecdsa) fn open(threshold: Threshold, reach: &Reach) -> Result<Self, Failure> {
        let (say, said) = sync::channel();
        let members = members(threshold, reach)?;
        let (tasks, threads, epoch) = (Vec::new(), Vec::new(), Instant::now());
        let mut group = Self { tasks, said, threads, epoch, programs: 0, _reach: reach.clone() };
        for (place, (node, config)) in members.into_iter().enumerate() {
            let (task, tasks) = mpsc::unbounded_channel();
            let (say, reach) = (say.clone(), reach.clone());
            let run = move || {
                // Whoever does not listen any more has ended the group.
                let run = || party::run(config, tasks, &|said| drop(say.send((place, Ok(said)))));
                let result = reach.enter(node).map_err(Failure::internal).and_then(|()| run());
                drop(result.map_err(|failure| say.send((place, Err(failure)))));
            };
            let thread = thread::Builder::new().name(format!("party-{}", place + 1)).spawn(run);
            group.threads.push(thread.map_err(Failure::internal)?);
            group.tasks.push(task);
        }
        for _ in 0..group.tasks.len() {
            group.next()?;
        }
        Ok(group)
    }

    /// Waits until a party has said something.
    fn next(&self) -> Result<(usize, Said), Failure> {
        let late = |_| Failure::Failed(format!("a party has done nothing for {} s", PATIENCE.as_secs()));
        let (place, said) = self.said.recv_timeout(PATIENCE).map_err(late)?;
        Ok((place, said?))
    }

    /// Gives each party its job of a program.
    fn begin(&mut self, jobs: Vec<Job>) -> Result<(), Failure> {
        self.programs += 1;
        for (party, job) in self.tasks.iter().zip(jobs) {
            let task = Task { program: self.programs, epoch: self.epoch, job };
            party.send(task).map_err(|_| Failure::internal("a party has ended"))?;
        }
        Ok(())
    }
}

impl Network for Sockets {
    fn run(&mut self, jobs: Vec<Job>) -> Result<Vec<Record>, Failure> {
        self.begin(jobs)?;
        let mut records = vec![None; self.tasks.len()];
        for _ in 0..self.tasks.len() {
            if let (place, Said::Finished(_, record)) = self.next()?
                && let Some(kept) = records.get_mut(place)
            {
                *kept = Some(record);
            }
        }
        Ok(records.into_iter().flatten().collect())
    }

    fn run_at_once(&mut self, programs: Vec<Vec<Job>>, at_once: usize) -> Result<Option<Duration>, Failure> {
        let begin = Instant::now();
        let mut waiting = programs.into_iter();
        let mut missing = BTreeMap::new();
        for jobs in waiting.by_ref().take(at_once) {
            self.begin(jobs)?;
            missing.insert(self.programs, self.tasks.len());
        }
        while !missing.is_empty() {
            let (_, Said::Finished(program, _)) = self.next()? else { continue };
            let left = missing.get_mut(&program).map_or(0, |left| {
                *left -= 1;
                *left
            });
            if left == 0 {
                missing.remove(&program);
                if let Some(jobs) = waiting.next() {
                    self.begin(jobs)?;
                    missing.insert(self.programs, self.tasks.len());
                }
            }
        }
        Ok(Some(begin.elapsed()))
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.tasks.clear();
        // A thread that has panicked has said so.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// What each party's mesh is started with.
fn members(threshold: Threshold, reach: &Reach) -> Result<Vec<(u16, MeshConfig)>, Failure> {
    let mut members = Vec::new();
    for index in threshold.indices() {
        let made = Identity::generate(&format!("party-{index}")).map_err(Failure::internal)?;
        let identity = Identity::from_pem(&made.certificate_pem, &made.key_pem).map_err(Failure::internal)?;
        let node = index.get();
        let address = reach.address(node).ok_or_else(|| Failure::internal("more parties than addresses"))?;
        let listener = reach.within(node, || TcpListener::bind((address, 0))).map_err(Failure::internal)?;
        members.push((node, index.number().into(), identity, listener));
    }
    let mut everyone = Vec::new();
    for (_, id, identity, listener) in &members {
        let address = listener.local_addr().map_err(Failure::internal)?.to_string();
        everyone.push(MeshPeer { id: *id, address, certificate: identity.fingerprint() });
    }
    let config = |(node, local, identity, listener)| {
        let peers = everyone.iter().filter(|peer| peer.id != local).cloned().collect();
        (node, MeshConfig { local, identity, listen: Listen::Bound(listener), peers, limits: MeshLimits::default() })
    };
    Ok(members.into_iter().map(config).collect())
}
