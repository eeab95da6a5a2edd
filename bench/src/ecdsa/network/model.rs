//! A network that there is not: all parties in this thread, one after the other, in virtual time.
//!
//! A party turns to a message when it has come and the party is free, and is busy for as long as this thread really computes for it. What it sends
//! leaves then, and arrives by the profile's latency and rate.

use std::{collections::BTreeMap, time::Duration};

use rand_chacha::ChaCha20Rng;
use theta::{exit::Failure, random};
use theta_rounds::PartyId;
use theta_wan::Profile;

use super::timeline::{Event, Timeline};
use crate::ecdsa::{
    job::{Job, Network},
    phase::{Clock, Record},
};

/// The parties of a group, as far from each other as the nodes of a profile.
pub(in crate::ecdsa) struct Model {
    profile: Profile,
    rng: ChaCha20Rng,
}

impl Model {
    /// With a profile of theta-wan.
    pub(in crate::ecdsa) fn new(profile: Profile) -> Result<Self, Failure> {
        Ok(Self { profile, rng: random::generator()? })
    }
}

impl Network for Model {
    fn run(&mut self, jobs: Vec<Job>) -> Result<Vec<Record>, Failure> {
        let mut jobs: BTreeMap<PartyId, Job> = jobs.into_iter().map(|job| (job.local(), job)).collect();
        let mut time = Timeline::new(&self.profile, jobs.keys().copied());
        while let Some((now, event)) = time.next() {
            let party = event.party();
            let job = jobs.get_mut(&party).ok_or_else(|| Failure::internal("a message to nobody"))?;
            let clock = Clock::virtual_at(now);
            let messages = match event {
                Event::Start(_) => {
                    job.meter().begin(clock);
                    job.start(&mut self.rng)?
                }
                Event::Arrival(message) => {
                    job.meter().resume(clock);
                    job.take(message, &mut self.rng)?
                }
            };
            time.busy(party, job.meter().pause().saturating_sub(now));
            messages.into_iter().try_for_each(|message| time.send(message))?;
        }
        Ok(jobs.values().map(|job| job.meter().record()).collect())
    }
    /// Virtual time begins anew for each program.
    fn run_at_once(&mut self, _: Vec<Vec<Job>>, _: usize) -> Result<Option<Duration>, Failure> {
        Ok(None)
    }
}
