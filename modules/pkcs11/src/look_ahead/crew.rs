//! The threads that ask what will be signed, and have it signed. There are few for each key, and none where there is nothing to do.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta_client::blocking::Client;
use theta_look_ahead::{Digest, Question, ask};

use super::{Ahead, event::Step, service::Service};
use crate::{log::shielded, mechanisms::Request, objects::LiveKey};

/// How long the service may take: it may read a zone, and search for the first digest of an event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whoever works for one key: what each of them has.
#[derive(Clone, Debug)]
pub(super) struct Crew {
    pub(super) service: Arc<Service>,
    pub(super) ahead: Arc<Ahead>,
    pub(super) client: Client,
    pub(super) key: LiveKey,
}

impl Crew {
    /// Starts a thread if there is something to do for one more. Where the system has none, nothing is looked ahead.
    pub(super) fn hire(&self) {
        {
            let mut event = self.ahead.event();
            if !event.is_due(Instant::now()) {
                return;
            }
            event.workers = event.workers.saturating_add(1);
        }
        let own = self.clone();
        let thread = thread::Builder::new().name("theta-look-ahead".to_owned());
        if shielded(|| thread.spawn(move || own.work())).is_err() {
            let mut event = self.ahead.event();
            event.workers = event.workers.saturating_sub(1);
        }
    }

    fn work(&self) {
        loop {
            let (step, report) = {
                let mut event = self.ahead.event();
                (event.next(Instant::now()), event.report(false))
            };
            if let Some(counts) = report {
                self.service.report(&self.key.reference, counts);
            }
            if step == Step::Rest {
                return;
            }
            // There may be more than this.
            self.hire();
            match step {
                Step::Ask(question) => self.ask(&question),
                Step::Sign(digests) => self.sign(&digests),
                Step::Rest => {}
            }
        }
    }

    fn ask(&self, question: &Question) {
        match ask(&self.service.socket, question, PATIENCE) {
            Ok(digests) => {
                self.ahead.event().listed(question, &digests);
                self.ahead.changed.notify_all();
            }
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    fn sign(&self, digests: &[Digest]) {
        let name = self.key.reference.as_str();
        let statements: Vec<Bytes> = digests.iter().map(|digest| Bytes::copy_from_slice(digest)).collect();
        let signed = self
            .client
            .within(self.service.timeout, self.client.asynchronous().sign_digests(name, &statements))
            .unwrap_or_else(|| Ok(Vec::new()));
        let mut failure = None;
        let answers = signed.unwrap_or_else(|error| {
            failure = Some(error.to_string());
            Vec::new()
        });
        let mut answers = answers.into_iter();
        let mut made = Vec::with_capacity(digests.len());
        for (digest, statement) in digests.iter().zip(statements) {
            let signature = match answers.next() {
                Some(Ok(answer)) => {
                    self.service.log.tell_of_liars(&answer);
                    // The host has shown this public key to others, whatever the name means by now.
                    let is_good = self.key.accepts(&Request::Digest(statement), &answer.result);
                    is_good.then_some(answer.result)
                }
                Some(Err(error)) => {
                    failure.get_or_insert_with(|| error.to_string());
                    None
                }
                None => None,
            };
            if signature.is_none() {
                failure.get_or_insert_with(|| format!("{name} gave no signature within {:?}", self.service.timeout));
            }
            made.push((*digest, signature));
        }
        self.ahead.event().made(made, Instant::now());
        match failure {
            // A node that refuses one may refuse more, and agents that find none of them look for no others for a minute.
            Some(failure) => self.give_up(&failure),
            None => self.ahead.changed.notify_all(),
        }
    }

    /// For a while.
    fn give_up(&self, why: &str) {
        self.ahead.event().pause(Instant::now());
        self.ahead.changed.notify_all();
        self.service.say_once(&format!("signatures with {} are not made ahead: {why}", self.key.reference));
    }
}
