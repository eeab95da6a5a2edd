//! Instances that wait for presignatures which are being made: as coordinators for any, and as signers for the one that its owner has named, whose
//! program may end there sooner than here.
//!
//! A program makes some dozens for little more than one takes, so requests that find a stock empty while one is under way wait for it, in the order
//! in which they came: the stock keeps that order, over all threads, and gives who comes nothing that others wait for. What another thread's instance has
//! made is seen with the next commands, at the next tick at the latest.

use core::{mem, time::Duration};
use std::collections::VecDeque;

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
        let (mut empty, mut still) = (Vec::new(), VecDeque::new());
        for Drawing { instance: id, mut ask, since } in mem::take(&mut self.worker.drawing) {
            // Whoever has ended needs none.
            let Some(instance) = self.running.get(&id) else { continue };
            let (key, since) = (instance.key.key_id, since.unwrap_or(now));
            let is_over = now.duration_since(since) >= longest;
            // What its owner has named comes with one program or another, whatever others wait for.
            let draws = matches!(ask, Ask::Draw { .. });
            if is_over && let Ask::Draw { waits, .. } | Ask::Take { waits, .. } = &mut ask {
                *waits = false;
            }
            if !is_over && draws && empty.contains(&key) {
                still.push_back(Drawing { instance: id, ask, since: Some(since) });
                continue;
            }
            // What began to wait meanwhile, as others went on, stays behind all that waited before.
            let waiting = self.worker.drawing.len();
            let supply = instance.draw(ask, &mut self.worker);
            if self.worker.drawing.len() > waiting
                && let Some(again) = self.worker.drawing.pop_back()
            {
                still.push_back(Drawing { since: Some(since), ..again });
                if draws {
                    empty.push(key);
                }
            }
            if let Some(supply) = supply {
                self.drive(id, Input::Supply(supply), Stage::ShareReceived);
            }
        }
        still.append(&mut self.worker.drawing);
        self.worker.drawing = still;
    }
}
