//! How requests become instances with machines.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time,
};

use theta_custody::KeyEntry;
use theta_protocols::{AnyMachine, Options, ecdsa, frost};
use theta_rounds::Bug;
use theta_schemes::{Unproven, prove_together};

use super::Shard;
use crate::{
    InstanceId, SubmitError,
    asked::Asked,
    instances::{
        ending::Audience,
        instance::{Instance, Sent},
        shared::Shared,
    },
    quota::Permit,
};

impl Shard {
    /// An instance whose time begins now.
    pub(in crate::instances) fn instance(
        &self,
        id: InstanceId,
        asked: Asked,
        key: Arc<KeyEntry>,
        machine: AnyMachine,
        audience: Audience,
        permits: (Permit, Permit),
    ) -> Instance {
        let Shared { metrics, config, .. } = &*self.worker.shared;
        Instance {
            id,
            asked,
            metrics: Arc::clone(metrics.suite(key.suite)),
            key,
            machine,
            audience,
            joined: Vec::new(),
            heard: Vec::new(),
            sent: Sent::default(),
            culprits: Vec::new(),
            submitted: time::Instant::now(),
            began: self.now,
            deadline: self.now + config.instance_ttl,
            wake: self.now,
            patience: config.resend_after,
            looked_around: false,
            permits: Some(permits),
            asker: None,
            filling: None,
        }
    }

    /// Checks a request and sets up its protocol.
    pub(in crate::instances) fn machine(&mut self, key: &KeyEntry, asked: &Asked) -> Result<AnyMachine, SubmitError> {
        let machine = self.unproven_machine(key, asked)?;
        let proven = catch_unwind(AssertUnwindSafe(|| prove_together(vec![machine], &mut self.worker.rng).pop()));
        match proven {
            Ok(Some(machine)) => machine.map_err(SubmitError::Request),
            _ => Err(SubmitError::Bug(Bug("a request's validation panicked"))),
        }
    }

    /// The same without the check of a proof that may wait for others.
    pub(super) fn unproven_machine(&self, key: &KeyEntry, asked: &Asked) -> Result<Unproven<AnyMachine>, SubmitError> {
        let Some(share) = key.expose_share() else {
            return Err(SubmitError::Bug(Bug("a key without a share was chosen")));
        };
        let shared = &self.worker.shared;
        let (per_peer, day) = (shared.config.nonces_per_peer, shared.burning.day(&shared.today));
        let frost = frost::Options { per_peer, day, seed: asked.seed.clone() };
        let ecdsa = self.ecdsa_options(key);
        let options = Options { delivery: key.delivery, frost, ecdsa };
        let started = catch_unwind(AssertUnwindSafe(|| {
            theta_protocols::start_unproven(&key.public, share, asked.statement.as_statement(), options)
        }));
        match started {
            Ok(machine) => machine.map_err(SubmitError::Request),
            Err(_) => Err(SubmitError::Bug(Bug("a request's validation panicked"))),
        }
    }

    /// Sets up the protocol that makes presignatures for this node's stock of a key.
    pub(in crate::instances) fn filling_machine(&self, key: &KeyEntry, filling: &ecdsa::Filling) -> Option<AnyMachine> {
        ecdsa::fill(&key.public, key.expose_share()?, filling, &self.ecdsa_options(key))
    }

    /// How ECDSA goes about signatures and presignatures of a key.
    fn ecdsa_options(&self, key: &KeyEntry) -> ecdsa::Options {
        let shared = &self.worker.shared;
        let (majority, security) = (ecdsa::Majority::of(key.delivery), ecdsa::Security::of(key.delivery));
        let day = shared.burning.day(&shared.today);
        let stock = &key.stock;
        let set_ups = stock.set_ups();
        set_ups.count_in(&shared.set_up_room);
        ecdsa::Options {
            level: shared.stock_level(key),
            day,
            epoch: key.epoch,
            majority,
            security,
            quarantined: stock.quarantined(),
            // A picture of the memory from before could be resumed: what is not on record as used up is not kept. Cheats are the same at all programs.
            set_ups: if shared.config.burn_nonces {
                Arc::new(ecdsa::SetUps::knowing(set_ups.cheats()))
            } else {
                set_ups
            },
            making: stock.making(),
            // Such a picture may be one of a program whose messages have left since: see `spec/ecdsa.md`, "Opened views".
            rehearsals: (!shared.config.burn_nonces).then(|| stock.rehearsals()),
        }
    }
}
