//! Programs of all parties of a black box, for tests of its parts.

use core::{future::Future, pin::Pin};

use theta_rounds::{
    Driver, LockStep, PartyId,
    simulator::{Conditions, Report, Simulator},
};
use theta_sharing::Threshold;

use crate::{Misbehaviour, Party, Program, Stop};

type Running<O> = Pin<Box<dyn Future<Output = Result<O, Stop>> + Send>>;

/// What every party of n comes to.
pub(super) fn run<O: Send + 'static>(
    n: u16,
    seed: u64,
    begin: impl Fn(Party) -> Running<O> + Copy + Send + 'static,
) -> Report<O, Misbehaviour> {
    let threshold = Threshold::new(n, n).unwrap();
    let mut simulator = Simulator::new(seed, Conditions::default());
    for index in threshold.indices() {
        let id = PartyId::of_share(index);
        let program = LockStep::new(Program::new(index, threshold, begin).unwrap());
        simulator.honest(id, Box::new(Driver::new(id, threshold.indices().map(PartyId::of_share), program)));
    }
    simulator.run()
}
