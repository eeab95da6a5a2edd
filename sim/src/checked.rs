//! Which signatures the nodes of one simulated group have checked.
//!
//! Each of them is shown the same votes, consents and statements, and checks them as it would alone: by the same code, with the same
//! answers. What one of them has found out about a key, a message and a signature is true for all of them, so that the others, and the
//! clients, are told it.

use std::collections::HashMap;

use theta_agreement::remembered::{Memory, Question};

/// The answers, each for one key, one message and one signature.
#[derive(Default)]
pub(crate) struct Checked(HashMap<Question, bool>);

impl Memory for Checked {
    fn recall(&self, question: &Question) -> Option<bool> {
        self.0.get(question).copied()
    }

    fn keep(&mut self, question: Question, answer: bool) {
        self.0.insert(question, answer);
    }
}
