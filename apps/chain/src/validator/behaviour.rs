//! Validators that misbehave, for tests and the demonstration.

use serde::{Deserialize, Serialize};

/// How a validator behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// As it should.
    #[default]
    Honest,
    /// It looks for orders to trade before: it reads what can be read, tries to open what is sealed with its own node's share and those
    /// of others, sends copies of sealed orders as its own, and proposes orders in an order of its own.
    FrontRuns,
    /// It proposes keys that are not those of the ciphertexts.
    ProposesFalseKeys,
    /// It proposes blocks with thousands of messages of its node.
    FloodsOrder,
    /// It executes blocks so that its own account gains.
    ExecutesFalsely,
}
