//! Programs of all parties of a group, for tests of their parts.

use core::future::Future;

use theta_names::ShareIndex;
use theta_rounds::{
    Driver, LockStep, PartyId,
    simulator::{Adversary, Conditions, Report, Simulator},
};
use theta_sharing::Threshold;

use super::{Misbehaviour, Party, Program, Stop};

/// What every party of k of n comes to.
pub(crate) fn among<O, F>(
    threshold: (u16, u16),
    seed: u64,
    begin: impl Fn(Party) -> F + Copy + Send + 'static,
) -> Report<O, Misbehaviour>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
{
    among_with(threshold, seed, |_| None, begin)
}

/// The same, with something between some parties and the network.
pub(crate) fn among_with<O, F>(
    (k, n): (u16, u16),
    seed: u64,
    between: impl Fn(ShareIndex) -> Option<Box<dyn Adversary>>,
    begin: impl Fn(Party) -> F + Copy + Send + 'static,
) -> Report<O, Misbehaviour>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
{
    let threshold = Threshold::new(k, n).unwrap();
    let mut simulator = Simulator::new(seed, Conditions::default());
    for index in threshold.indices() {
        let id = PartyId::of_share(index);
        let program = LockStep::new(Program::new(index, threshold, begin).unwrap());
        let machine = Box::new(Driver::new(id, threshold.indices().map(PartyId::of_share), program));
        match between(index) {
            Some(adversary) => simulator.byzantine(id, machine, adversary),
            None => simulator.honest(id, machine),
        }
    }
    simulator.run()
}
