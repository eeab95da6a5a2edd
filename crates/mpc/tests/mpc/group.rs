//! Groups that run a program.

use std::future::Future;
use std::sync::{Arc, Mutex};

use theta_groups::Group;
use theta_mpc::{BlackBox, Check, MascotOf, Misbehaviour, Party, Program, Rep3, Security, SemiOt, Shamir, Stop};
use theta_names::ShareIndex;
use theta_rounds::simulator::{Adversary, Conditions, HonestSend, Report, SimRng, Simulator};
use theta_rounds::{Driver, LockStep, PartyId};
use theta_sharing::Threshold;

/// The party of a number, from 1.
pub(crate) fn party(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

/// A black box that tests can make.
pub(crate) trait Made: BlackBox {
    /// As many products as make several messages or steps, within what an instance may send.
    const MANY: u64 = 200;
    /// The rounds in which it is set up.
    const SET_UP: u16 = 1;
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send;
    fn make_for_openings(party: &Party) -> Result<Self, Stop>;
}

impl<G: Group, M: Security> Made for Shamir<G, M> {
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
        Self::new(party)
    }
    fn make_for_openings(party: &Party) -> Result<Self, Stop> {
        Self::openings_only(party)
    }
}

impl<G: Group, M: Security> Made for Rep3<G, M> {
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
        Self::new(party)
    }
    fn make_for_openings(party: &Party) -> Result<Self, Stop> {
        Self::openings_only(party)
    }
}

impl<G: Group> Made for SemiOt<G> {
    const MANY: u64 = 100;
    const SET_UP: u16 = 4;
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
        Self::new(party)
    }
    fn make_for_openings(party: &Party) -> Result<Self, Stop> {
        Self::openings_only(party)
    }
}

impl<G: Group, C: Check> Made for MascotOf<G, C> {
    const MANY: u64 = 8;
    const SET_UP: u16 = 5;
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
        Self::new(party)
    }
    fn make_for_openings(party: &Party) -> Result<Self, Stop> {
        Self::openings_only(party)
    }
}

/// Runs a test of one black box with each of them.
macro_rules! with_each {
    ($group:ty, $test:ident) => {
        $test::<theta_mpc::Shamir<$group, theta_mpc::Passive>>(3, 1);
        $test::<theta_mpc::Shamir<$group, theta_mpc::Passive>>(4, 1);
        $test::<theta_mpc::Shamir<$group, theta_mpc::Passive>>(5, 2);
        $test::<theta_mpc::Shamir<$group, theta_mpc::Active>>(3, 1);
        $test::<theta_mpc::Shamir<$group, theta_mpc::Active>>(5, 2);
        $test::<theta_mpc::Rep3<$group, theta_mpc::Passive>>(3, 1);
        $test::<theta_mpc::Rep3<$group, theta_mpc::Active>>(3, 1);
        $test::<theta_mpc::SemiOt<$group>>(2, 1);
        $test::<theta_mpc::SemiOt<$group>>(3, 2);
        $test::<theta_mpc::Mascot<$group>>(2, 1);
        $test::<theta_mpc::Mascot<$group>>(3, 2);
    };
}
pub(crate) use with_each;

/// A party that sends what it likes.
pub(crate) type Liar = (u16, Box<dyn Adversary>);

/// A group of n with t corruptible parties.
pub(crate) struct GroupOf {
    pub(crate) n: u16,
    pub(crate) t: u16,
    pub(crate) seed: u64,
    /// Of a thousand messages so many come twice.
    pub(crate) twice: u64,
    /// Parties whose messages to all others are lost.
    pub(crate) silent: Vec<u16>,
    pub(crate) liars: Vec<Liar>,
}

impl GroupOf {
    pub(crate) fn new(n: u16, t: u16) -> Self {
        Self { n, t, seed: 1, twice: 20, silent: Vec::new(), liars: Vec::new() }
    }

    pub(crate) fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Every message comes twice, the copy before or after it.
    pub(crate) fn all_twice(self) -> Self {
        Self { twice: 1_000, ..self }
    }

    pub(crate) fn liar(mut self, number: u16, adversary: impl Adversary + 'static) -> Self {
        self.liars.push((number, Box::new(adversary)));
        self
    }

    /// Runs the program that `begin` makes for each party, numbered from 1.
    pub(crate) fn run<O, F>(self, begin: impl Fn(u16) -> Box<dyn FnOnce(Party) -> F + Send>) -> Report<O, Misbehaviour>
    where
        O: Send + 'static,
        F: Future<Output = Result<O, Stop>> + Send + 'static,
    {
        let threshold = Threshold::new(self.t + 1, self.n).unwrap();
        let conditions = Conditions { duplicates_per_mille: self.twice, ..Conditions::default() };
        let mut simulator = Simulator::new(self.seed, conditions);
        let mut liars = self.liars;
        for number in 1..=self.n {
            let index = ShareIndex::try_from(number).unwrap();
            let program = Program::new(index, threshold, begin(number)).unwrap();
            let machine = Box::new(Driver::new(party(number), (1..=self.n).map(party), LockStep::new(program)));
            match liars.iter().position(|(liar, _)| *liar == number) {
                Some(place) => simulator.byzantine(party(number), machine, liars.swap_remove(place).1),
                None if self.silent.contains(&number) => {
                    simulator.byzantine(party(number), machine, theta_rounds::simulator::Behaviour::Silent);
                }
                None => simulator.honest(party(number), machine),
            }
        }
        simulator.run()
    }
}

/// The same program at all parties.
pub(crate) fn same<O, F>(
    program: impl Fn(Party) -> F + Copy + Send + 'static,
) -> impl Fn(u16) -> Box<dyn FnOnce(Party) -> F + Send>
where
    F: Future<Output = Result<O, Stop>> + Send + 'static,
{
    move |_| Box::new(program)
}

/// Each message that a party sends, in order: recipient, round, payload.
pub(crate) type Sent = Arc<Mutex<Vec<(u16, u16, Vec<u8>)>>>;

/// Records what an honest machine sends, and sends it.
pub(crate) struct Recorder(pub(crate) Sent);

impl Adversary for Recorder {
    fn on_send(&mut self, _rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        self.0.lock().unwrap().push((to.get(), honest.slot.number, honest.payload.to_vec()));
        vec![honest]
    }
}
