//! How far a ceremony has come at this node, and when it last came further.

/// How often each member may have led before further views count for nothing: then there is something else wrong than the leaders.
const TURNS: u32 = 2;

/// How far it has come.
#[derive(Debug)]
pub(super) struct Progress {
    /// Steps done, and all steps, as far as they can be told.
    steps: (u32, u32),
    /// How many certificates there are, and which view it is.
    stage: (u32, u32),
    /// The last view that counts.
    last_view: u32,
    /// The age of the ceremony when it last came further.
    moved: u32,
}

impl Progress {
    /// Of a ceremony with so many members.
    pub(super) fn new(members: usize) -> Self {
        let members = u32::try_from(members).unwrap_or(u32::MAX);
        Self { steps: (0, 0), stage: (0, 0), last_view: members.saturating_mul(TURNS), moved: 0 }
    }

    /// Steps done, and all steps; neither ever falls.
    pub(super) const fn steps(&self) -> (u32, u32) {
        self.steps
    }

    /// It is at these steps and in this stage at this age. A view that ends without a decision is progress as well: a quorum has voted, and the
    /// next leader may be a better one. Among very many members a few silent leaders take longer than nodes wait.
    pub(super) fn note(&mut self, (done, of): (u32, u32), (certificates, view): (u32, u32), age: u32) {
        let steps = (self.steps.0.max(done), self.steps.1.max(of));
        let stage = (self.stage.0.max(certificates), self.stage.1.max(view.min(self.last_view)));
        if (steps, stage) != (self.steps, self.stage) {
            (self.steps, self.stage) = (steps, stage);
            self.moved = age;
        }
    }

    /// It is taken to have come further at this age.
    pub(super) const fn move_on(&mut self, age: u32) {
        self.moved = age;
    }

    /// For how long it has come no further, at this age.
    pub(super) const fn idle(&self, age: u32) -> u32 {
        age.saturating_sub(self.moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ages at which the views of 127 members end whose leaders are silent.
    const ENDS: [u32; 5] = [17, 50, 85, 122, 161];

    #[test]
    fn leaders_that_are_silent_in_turn_are_waited_for() {
        let mut progress = Progress::new(127);
        progress.note((127, 127), (0, 0), 1);
        for (end, view) in ENDS.into_iter().zip(1..) {
            assert!(progress.idle(end) < 40, "view {view}");
            progress.note((127, 127), (0, view), end);
        }
        assert_eq!(progress.idle(161), 0);
        assert_eq!(progress.steps(), (127, 127));
    }

    #[test]
    fn what_is_decided_is_progress_and_views_without_end_are_not() {
        let mut progress = Progress::new(4);
        progress.note((4, 4), (0, 0), 1);
        progress.note((2, 3), (1, 0), 30);
        assert_eq!((progress.idle(30), progress.steps()), (0, (4, 4)));
        progress.note((2, 3), (1, 8), 50);
        for view in 9..100 {
            progress.note((2, 3), (1, view), 50 + view);
        }
        assert_eq!(progress.idle(149), 99);
    }
}
