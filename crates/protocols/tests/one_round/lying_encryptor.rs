//! The encryptor lies: every share is right and still the result is not. Nobody in the group is to blame.

use std::sync::Arc;

use crate::support::{Setting, id};
use rand_core::CryptoRng;
use theta_groups::{DecodeError, Ristretto255, Secret};
use theta_protocols::one_round::OneRound;
use theta_rounds::simulator::{Conditions, Simulator};
use theta_rounds::{Abort, Driver};
use theta_schemes::ciphers::sg02::Sg02;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyScheme};
use theta_schemes::{CombineError, RequestError, Statement, StatementBytes, Suite, ThresholdScheme};
use theta_sharing::ShareIndex;

type Honest = Sg02<Ristretto255>;

/// SG02 on a ciphertext whose key commitment fits no key.
struct Lied;

impl KeyScheme for Lied {
    type PublicKey = <Honest as KeyScheme>::PublicKey;
    type KeyShare = <Honest as KeyScheme>::KeyShare;
    const SUITE: Suite = Honest::SUITE;
}

impl ThresholdScheme for Lied {
    type Request = <Honest as ThresholdScheme>::Request;
    type Share = <Honest as ThresholdScheme>::Share;
    type Output = <Honest as ThresholdScheme>::Output;

    const CHECKABLE: bool = true;

    fn parse_request(public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        Honest::parse_request(public, statement)
    }

    fn create_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        Honest::create_share(public, key, request, rng)
    }

    fn share_index(share: &Self::Share) -> ShareIndex {
        Honest::share_index(share)
    }

    fn encode_share(share: &Self::Share) -> Vec<u8> {
        Honest::encode_share(share)
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError> {
        Honest::decode_share(index, bytes)
    }

    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        Honest::verify_shares(public, request, shares, rng)
    }

    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        // The commitment does not fit what the shares make.
        Honest::combine(public, request, shares).and(Err(CombineError::ResultInvalid))
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        Honest::encode_output(output)
    }
}

#[test]
fn it_ends_with_the_reason_and_blames_no_party() {
    let setting = Setting::new(Suite::Sg02Ristretto255, 3, 5);
    let AnyPublicKey::Sg02Ristretto255(public) = &setting.public else { panic!("another suite") };
    let StatementBytes::Decapsulate(header) = &setting.statement else { panic!("another purpose") };

    let mut simulator = Simulator::new(1, Conditions::default());
    for number in 1..=5 {
        let AnyKeyShare::Sg02Ristretto255(key) = setting.shares[usize::from(number) - 1].as_ref() else {
            panic!("another suite")
        };
        let request = Lied::parse_request(public, &Statement::Decapsulate(header)).unwrap();
        let (public, key) = (Arc::clone(public), Arc::clone(key));
        let protocol =
            OneRound::<Lied>::new(id(number), setting.public.threshold(), public, key, request, Secret::new([7; 32]));
        simulator.honest(id(number), Box::new(Driver::new(id(number), (1..=5).map(id), protocol)));
    }
    let report = simulator.run();
    for (_, party) in report.honest() {
        assert!(party.blames.is_empty());
        let abort = party.result.as_ref().unwrap().as_ref().unwrap_err();
        assert!(matches!(abort, Abort::Input(_)), "{abort}");
        assert!(abort.to_string().contains("encrypted"));
    }
}
