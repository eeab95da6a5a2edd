//! What time brings to a shard, and when it wants to be woken.

use core::{cmp::Reverse, time::Duration};
use std::{collections::HashMap, sync::atomic::Ordering::Relaxed};

use theta_names::Delivery;
use theta_rounds::Input;
use tokio::time::Instant;
use tracing::debug;

use super::Shard;
use crate::{
    InstanceId,
    filling::FillingPermit,
    instances::{instance::Instance, shared::ShardLoad},
};

/// The most requests to send again that leave at one tick: a node that is behind must not add to its peers' load.
const ASKS_PER_TICK: usize = 256;
/// The least time between two ticks, however many instances want one.
const FINEST: Duration = Duration::from_millis(5);

impl Shard {
    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.backlog.expire(self.now);
        self.results.expire(self.now);
        self.look_after();
        self.fill();
        let shared = &self.worker.shared;
        shared.metrics.ticks.inc();
        shared.metrics.backlog_dropped.inc_by(self.backlog.take_dropped());
        shared.publish_load();
        // Not before all that is to be seen of it has been published.
        self.ticks.none = self.is_idle() && self.load().is_some_and(|load| load.inbox.load(Relaxed) == 0);
    }

    /// Whether nothing here waits for the time, but for results that will be too old.
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.backlog.len() == 0
    }

    fn load(&self) -> Option<&ShardLoad> {
        self.worker.shared.shards.get(self.index)
    }

    /// Lets instances whose time has come ask for what they lack, or ends them.
    fn look_after(&mut self) {
        let mut asks = ASKS_PER_TICK;
        while asks > 0
            && let Some(&Reverse((wake, id))) = self.timers.peek()
            && wake <= self.now
        {
            self.timers.pop();
            let Some(instance) = self.running.get_mut(&id).filter(|instance| instance.wake == wake) else { continue };
            let is_superseded = instance.filling.as_ref().is_some_and(FillingPermit::is_superseded);
            if is_superseded || instance.deadline <= self.now || instance.is_in_vain(&self.worker.shared, self.now) {
                self.expire(id);
                continue;
            }
            if !instance.looked_around {
                // What it waits for may be here and not have been looked at. It may end sooner than it seems that this node is behind.
                let config = &self.worker.shared.config;
                let due = self.hedge.longer(&instance.key, config, self.behind).map(|wait| instance.began + wait);
                if let Some(due) = due.filter(|due| *due > self.now) {
                    instance.wake = instance.deadline.min(due).min(self.now + config.resend_after);
                    self.timers.push(Reverse((instance.wake, id)));
                    continue;
                }
                instance.looked_around = true;
                if instance.key.delivery == Delivery::Quorum {
                    self.worker.shared.metrics.hedges.inc();
                }
            }
            // The tick comes first: what the machine gets by it need not be asked for, and what it sends need not be repeated.
            let sent = instance.sent.count();
            if let Some(result) = instance.step(Input::Tick, &mut self.worker) {
                self.finish(id, result);
                continue;
            }
            let Some(instance) = self.running.get_mut(&id) else { continue };
            let shared = &self.worker.shared;
            let asked = instance.ask(shared, sent);
            debug!(instance = %id, asked, "asked the silent to send again");
            asks = asks.saturating_sub(asked.max(1));
            let least = shared.config.resend_after;
            instance.patience = (2 * instance.patience).clamp(least, 16 * least);
            instance.wake = instance.deadline.min(self.now + instance.patience);
            self.timers.push(Reverse((instance.wake, id)));
        }
    }

    /// The clock's time, which rises, and how far this node is behind: how long requests that begin now have waited for it, or what the commands before
    /// took; what it was behind before is made up for as time passes. Where no ticks come, the clock stands for them.
    pub(crate) fn set_clock(&mut self, now: Instant, behind: Duration) {
        let passed = now.saturating_duration_since(self.clock);
        self.behind = behind.max(self.behind.saturating_sub(passed));
        self.clock = self.clock.max(now);
        if self.ticks.none {
            self.now = self.now.max(now);
        }
    }

    /// When to wake up before the next tick that comes by itself, if that is earlier than what was asked for last.
    fn next_alarm(&mut self) -> Option<Instant> {
        let void = |running: &HashMap<_, Box<Instance>>, (wake, id): &(Instant, InstanceId)| {
            running.get(id).is_none_or(|instance| instance.wake != *wake)
        };
        while self.timers.peek().is_some_and(|Reverse(timer)| void(&self.running, timer)) {
            self.timers.pop();
        }
        let Reverse((wake, _)) = self.timers.peek()?;
        let next = (*wake).max(self.now + FINEST);
        let waits = self.ticks.alarm.filter(|alarm| *alarm > self.now);
        let soon = next < self.now + self.worker.shared.config.tick;
        (soon && waits.is_none_or(|alarm| next < alarm)).then_some(next)
    }

    /// Updates what others see of this shard, and the ticks that it wants; `inbox` commands wait for it.
    pub(crate) fn report(&mut self, inbox: usize) {
        if self.ticks.none && self.is_idle() {
            let due = self.results.due().into_iter().chain(self.next_plan()).min();
            self.ticks.alarm = due.map(|due| due.max(self.now + self.worker.shared.config.tick));
        } else {
            self.ticks.none = false;
            self.ticks.alarm = self.next_alarm().or(self.ticks.alarm);
        }
        let Some(load) = self.load() else { return };
        load.inbox.store(inbox, Relaxed);
        load.backlog.store(self.backlog.len(), Relaxed);
        load.results.store(self.results.len(), Relaxed);
        let ticks = self.ticks;
        load.ticks.send_if_modified(|wanted| core::mem::replace(wanted, ticks) != ticks);
    }
}
