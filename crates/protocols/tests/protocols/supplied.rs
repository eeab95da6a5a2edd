//! A machine that is supplied at once with what it asks for.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_protocols::{AnyMachine, Ask, Machine, Misbehaviour, Outcome, Served, Stock, Supply, Used, ecdsa};
use theta_rounds::{Effect, Effects, Input, PartyId, Slot, simulator};
use theta_schemes::check_together;

/// A machine of any kind that needs nothing from outside but messages.
pub(crate) type SuppliedMachine = simulator::AnyMachine<Outcome, Misbehaviour>;

/// A machine and the stock of its key.
struct Supplied(AnyMachine, Arc<Stock>);

/// The machine, supplied from `stock`.
pub(crate) fn supplied(machine: AnyMachine, stock: &Arc<Stock>) -> SuppliedMachine {
    Box::new(Supplied(machine, Arc::clone(stock)))
}

/// The machine, with a stock of its own, which is empty.
pub(crate) fn alone(machine: AnyMachine) -> SuppliedMachine {
    supplied(machine, &Arc::default())
}

/// Nobody records what is used up.
fn supply<A>(served: Served<Supply, Used, A>) -> Option<Supply> {
    match served {
        // Whoever waits is not served here.
        Served::Done | Served::Later(_) => None,
        Served::Supply(supply) => Some(supply),
        Served::Used(used) => Some(used.into()),
    }
}

impl Machine for Supplied {
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;
    type Ask = Infallible;
    type Supply = Infallible;

    fn handle(&mut self, input: Input<Infallible>, rng: &mut dyn CryptoRng) -> Effects<Self> {
        let mut out = Vec::new();
        let mut inputs = VecDeque::from([match input {
            Input::Start => Input::Start,
            Input::Tick => Input::Tick,
            Input::Supply(nothing) => match nothing {},
            Input::Message { from, slot, channel, payload } => Input::Message { from, slot, channel, payload },
        }]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.0.handle(input, rng) {
                out.push(match effect {
                    Effect::Ask(ask) => {
                        let supply = match ask {
                            Ask::Check(claim) => Some(Supply::Checked(check_together(&[claim], rng) == [true])),
                            Ask::Nonces(ask) => supply(self.1.nonces(ask)),
                            Ask::Presignatures(ask) => match self.1.presignatures(ask) {
                                // What is not there now is not there at all.
                                Served::Later(ecdsa::Ask::Take { owner, id, again, .. }) => {
                                    supply(self.1.presignatures(ecdsa::Ask::Take { owner, id, waits: false, again }))
                                }
                                served => supply(served),
                            },
                        };
                        inputs.extend(supply.map(Input::Supply));
                        continue;
                    }
                    Effect::Send { to, slot, channel, payload } => Effect::Send { to, slot, channel, payload },
                    Effect::Blame(blame) => Effect::Blame(blame),
                    Effect::Finished(result) => Effect::Finished(result),
                });
            }
        }
        out
    }

    fn contributions(&self) -> (usize, usize) {
        self.0.contributions()
    }

    fn awaits(&self, party: PartyId) -> bool {
        self.0.awaits(party)
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    fn rest(&mut self) {
        self.0.rest();
    }

    fn kept_bytes(&self) -> usize {
        self.0.kept_bytes()
    }

    fn outlives_rest(&self, slot: Slot) -> bool {
        self.0.outlives_rest(slot)
    }

    fn lingers(&self) -> bool {
        self.0.lingers()
    }
}
