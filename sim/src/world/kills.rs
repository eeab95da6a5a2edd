//! Nodes that lose their power at a step of theirs: between one message and the next, or one write and the next.

use bytes::Bytes;
use prost::Message as _;
use theta_wire::peer::{Envelope, INSTANCES};

use super::{Event, World};
use crate::scenario::{Fault, Step};

/// A node that will lose its power.
pub(super) struct Kill {
    step: Step,
    pause: u64,
    /// How many messages of instances it has sent.
    sent: u64,
}

impl World<'_> {
    pub(super) fn plan_kill(&mut self, fault: &Fault) {
        let Fault::Kill { node, step, pause } = *fault else { return };
        if let Step::Written(writes) = step {
            // It has opened its store by then.
            self.at(1, Event::Doom { node, writes });
        }
        self.kills.insert(node, Kill { step, pause, sent: 0 });
    }

    /// A message has left a node; returns whether that was its last one.
    pub(super) fn kill_after(&mut self, number: u16, bytes: &Bytes) -> bool {
        let Some(kill) = self.kills.get_mut(&number) else { return false };
        let is_of_instance = Envelope::decode(bytes.clone()).is_ok_and(|envelope| envelope.stream == INSTANCES);
        kill.sent += u64::from(is_of_instance);
        let is_over = kill.step == Step::Sent(kill.sent);
        if is_over {
            self.kill(number);
        }
        is_over
    }

    /// A node's disk has refused a write: then its power is gone, and what it would send is lost with it.
    pub(super) fn kill_unwritten(&mut self, number: u16) {
        let is_written = |kill: &Kill| matches!(kill.step, Step::Written(_));
        let has_failed = self.nodes.get(&number).is_some_and(|node| node.life.is_some() && node.disk.has_failed());
        if has_failed && self.kills.get(&number).is_some_and(is_written) {
            self.kill(number);
        }
    }

    fn kill(&mut self, number: u16) {
        let Some(kill) = self.kills.remove(&number) else { return };
        self.trace.tell(|| format!("node {number} loses its power"));
        self.crash(number);
        self.at(self.now + kill.pause, Event::Start(number));
    }
}
