//! What a request ends with, and the machine of any protocol that ends so.

use theta_groups::Secret;
use theta_rounds::Machine;
use theta_sharing::ShareIndex;

use crate::{Ask, Misbehaviour, Supply};

/// The result of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The payload key, signature or coin value in its standard encoding.
    pub result: Secret<Vec<u8>>,
    /// The proof of a result that does not prove itself; otherwise empty.
    pub proof: Vec<u8>,
    /// The holders of the shares from which the result was made: k, or the 2 k - 1 of a program that signed with ECDSA.
    pub contributors: Vec<ShareIndex>,
}

/// The machine of any protocol, for one request at one party.
pub type AnyMachine = Box<dyn Machine<Output = Outcome, Misbehaviour = Misbehaviour, Ask = Ask, Supply = Supply>>;
