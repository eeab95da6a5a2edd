//! What a simulator has checked before: signatures that many of its nodes are shown, and each of them would check again.
//!
//! No product has this: it is compiled with the feature `simulator` alone, and does nothing before somebody gives a [`Memory`].

use core::cell::RefCell;

use super::schnorr::{Claim, Signature};

/// All that the answer depends on: the key, the hash of the whole message, and the signature.
pub type Question = (Vec<u8>, [u8; 64], Signature);

/// Remembers answers.
pub trait Memory {
    /// The answer that was kept for this question, and for no other one.
    fn recall(&self, question: &Question) -> Option<bool>;

    /// Keeps an answer.
    fn keep(&mut self, question: Question, answer: bool);
}

thread_local! {
    static MEMORY: RefCell<Option<Box<dyn Memory>>> = const { RefCell::new(None) };
}

/// Takes the memory away again, also when what ran has panicked.
struct Lent;

impl Drop for Lent {
    fn drop(&mut self) {
        MEMORY.set(None);
    }
}

/// Runs something in which no signature is checked twice, as far as this thread goes.
pub fn with_memory<T>(memory: Box<dyn Memory>, run: impl FnOnce() -> T) -> T {
    MEMORY.set(Some(memory));
    let _lent = Lent;
    run()
}

fn question(claim: &Claim<'_>) -> Question {
    (claim.key.bytes().to_vec(), claim.message.clone().finish(), *claim.signature)
}

/// Whether all claims are true; `check` looks at those that are news, together.
pub(super) fn vartime_verify_news(claims: &[&Claim<'_>], check: impl Fn(&[&Claim<'_>]) -> bool) -> bool {
    MEMORY.with_borrow_mut(|memory| {
        let Some(memory) = memory else { return check(claims) };
        let (mut news, mut questions) = (Vec::new(), Vec::new());
        for claim in claims {
            let question = question(claim);
            match memory.recall(&question) {
                Some(true) => {}
                Some(false) => return false,
                None => {
                    news.push(*claim);
                    questions.push(question);
                }
            }
        }
        let answer = news.is_empty() || check(&news);
        // Of several that are not all true nobody knows which one is false.
        if answer || questions.len() == 1 {
            questions.into_iter().for_each(|question| memory.keep(question, answer));
        }
        answer
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use theta_groups::{Group, Ristretto255, RistrettoScalar, Secret, Transcript};
    use theta_sharing::Encoded;

    use super::super::schnorr::{Message, sign, vartime_verify, vartime_verify_all};
    use super::*;

    #[derive(Default)]
    struct Kept(BTreeMap<Question, bool>);

    impl Memory for Kept {
        fn recall(&self, question: &Question) -> Option<bool> {
            self.0.get(question).copied()
        }

        fn keep(&mut self, question: Question, answer: bool) {
            self.0.insert(question, answer);
        }
    }

    fn message(number: u8) -> Message {
        Transcript::new("theta/ceremony/test/v1").with("number", &[number])
    }

    /// Whoever has another key, another message or another signature gets an answer of its own, however often each is asked.
    #[test]
    fn an_answer_is_for_key_message_and_signature() {
        let secrets = [3_u64, 4].map(|number| Secret::new(RistrettoScalar::from_u64(number)));
        let keys = secrets.each_ref().map(|secret| Encoded::new(Ristretto255::mul_base(secret.expose())));
        let signed = |signer: usize, number| sign(&secrets[signer], &keys[signer], &message(number));
        with_memory(Box::<Kept>::default(), || {
            for _ in 0..2 {
                for (signer, number, key, shown) in
                    [(0, 1, 0, 1), (0, 1, 1, 1), (0, 1, 0, 2), (1, 1, 0, 1), (1, 2, 1, 2)]
                {
                    let (truth, signature) = (signer == key && number == shown, signed(signer, number));
                    assert_eq!(vartime_verify(&keys[key], &message(shown), &signature), truth);
                    let claim =
                        |key: usize, shown, signature| Claim { key: &keys[key], message: message(shown), signature };
                    let other = signed(1, 7);
                    assert_eq!(vartime_verify_all(&[claim(1, 7, &other), claim(key, shown, &signature)]), truth);
                }
            }
        });
    }

    /// What is kept is answered without a look at the signature, and nothing is kept for whoever comes later.
    #[test]
    fn a_memory_is_asked_first_and_taken_away() {
        let secret = Secret::new(RistrettoScalar::from_u64(3));
        let key = Encoded::new(Ristretto255::mul_base(secret.expose()));
        let (said, nothing) = (message(1), [0; 64]);
        let mut kept = Kept::default();
        kept.keep((key.bytes().to_vec(), said.clone().finish(), nothing), true);
        assert!(with_memory(Box::new(kept), || vartime_verify(&key, &said, &nothing)));
        assert!(!vartime_verify(&key, &said, &nothing));
    }
}
