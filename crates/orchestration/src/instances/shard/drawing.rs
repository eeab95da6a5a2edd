//! Instances that wait for presignatures which are being made.
//!
//! A program makes some dozens for little more than one takes, so requests that find a stock empty while one is under way wait for it, in the order
//! in which they came. What another thread's instance has made is seen with the next commands, at the next tick at the latest.

use core::time::Duration;

use theta_protocols::ecdsa::Ask;
use theta_rounds::Input;

use super::Shard;
use crate::{instances::instance::Drawing, metrics::Stage};

/// How long an instance waits at most.
const LONGEST: Duration = Duration::from_millis(100);

impl Shard {
    /// Serves those that wait, as far as there is anything for them. Who has waited long enough takes what comes, be it nothing.
    pub(super) fn draw(&mut self) {
        let now = self.now.max(self.clock);
        // With a tick more, less than what the other holders wait before they take this node for silent.
        let config = &self.worker.shared.config;
        let longest = (config.resend_after * 2 / 5).saturating_sub(config.tick / 5).min(LONGEST);
        let mut empty = Vec::new();
        for _ in 0..self.worker.drawing.len() {
            let Some(Drawing { instance: id, mut ask, since }) = self.worker.drawing.pop_front() else { return };
            // Whoever has ended needs none.
            let Some(instance) = self.running.get(&id) else { continue };
            let (key, since) = (instance.key.key_id, since.unwrap_or(now));
            let is_over = now.duration_since(since) >= longest;
            if is_over && let Ask::Draw { waits, .. } = &mut ask {
                *waits = false;
            }
            if !is_over && empty.contains(&key) {
                self.worker.drawing.push_back(Drawing { instance: id, ask, since: Some(since) });
                continue;
            }
            let waiting = self.worker.drawing.len();
            let supply = instance.draw(ask, &mut self.worker);
            if let Some(again) = self.worker.drawing.get_mut(waiting) {
                again.since = Some(since);
                empty.push(key);
            }
            if let Some(supply) = supply {
                self.drive(id, Input::Supply(supply), Stage::ShareReceived);
            }
        }
    }
}
