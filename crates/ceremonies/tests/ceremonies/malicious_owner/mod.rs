//! The owner of a lost share is malicious, and so may t - 1 helpers be: it sends each helper what it likes, passes on
//! what it likes, and tries to learn more of the key than its own share.

mod lists;
mod unknowns;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use theta_ceremonies::{
    Ceremony, Digest, Effects, ITEMS, Input, Kind, Memory, QuorumCertificate, Statement, StatementSlot, rewrite,
    statements_of,
};
use theta_groups::Ristretto255;
use theta_rounds::Machine;
use theta_rounds::{Channel, Effect, PartyId};
use theta_schemes::coins::cks05::Cks05;

use crate::recovery::Setting;
use crate::support::{keys_of, party, test_rng};

type Coin = Cks05<Ristretto255>;

/// An answer: the helper, the attempt, and the digest of the request.
type Answered = (PartyId, u32, Digest);

/// Honest helpers, and all that the owner and its accomplices know.
struct Attack {
    setting: Setting<Coin>,
    corrupt: BTreeSet<PartyId>,
    helpers: BTreeMap<PartyId, Ceremony>,
    /// A message from which others are made.
    template: Bytes,
    /// The owner's encryption key.
    owner_key: Vec<u8>,
    said: Vec<Statement>,
    /// The lists of helpers in all requests, by attempt and digest.
    requests: BTreeMap<(u32, Digest), Vec<PartyId>>,
}

impl Attack {
    fn new(setting: Setting<Coin>, corrupt: BTreeSet<PartyId>) -> Self {
        let mut owner = setting.join(setting.lost, Memory::Kept, 0);
        let template = said_by(owner.handle(Input::Start, &mut test_rng(0))).remove(0);
        let honest = setting.plan.parties().filter(|who| *who != setting.lost && !corrupt.contains(who));
        let helpers = honest.map(|who| (who, setting.join(who, Memory::Kept, 0))).collect();
        let key = statements_of(&template).find(|said| said.slot().kind == Kind::EncryptionKey).unwrap();
        let (owner_key, said, requests) = (key.body().to_vec(), Vec::new(), BTreeMap::new());
        let mut attack = Self { setting, corrupt, helpers, template, owner_key, said, requests };
        let honest: Vec<_> = attack.helpers.keys().copied().collect();
        honest.into_iter().for_each(|who| attack.step(who, Input::Start));
        for who in attack.corrupt.clone() {
            let said = said_by(attack.setting.join(who, Memory::Kept, 0).handle(Input::Start, &mut test_rng(0)));
            attack.said.extend(said.iter().flat_map(|payload| statements_of(payload)));
        }
        let keys = attack.keys();
        attack.show_all(&keys);
        attack
    }

    /// The helpers' encryption keys for masks.
    fn keys(&self) -> Vec<Statement> {
        self.of(Kind::EncryptionKey, 0).cloned().collect()
    }

    fn step(&mut self, who: PartyId, input: Input) {
        let helper = self.helpers.get_mut(&who).unwrap();
        let payloads = said_by(helper.handle(input, &mut test_rng(0)));
        let own = payloads.iter().flat_map(|payload| statements_of(payload)).filter(|said| said.author() == who);
        self.said.extend(own);
    }

    /// The owner shows statements to one helper.
    fn show(&mut self, who: PartyId, statements: &[Statement]) {
        let payload = rewrite(&self.template, |_| statements.to_vec()).unwrap();
        let (from, channel) = (self.setting.lost, Channel::Broadcast);
        self.step(who, Input::Message { from, slot: ITEMS, channel, payload: payload.into() });
    }

    fn show_all(&mut self, statements: &[Statement]) {
        let honest: Vec<_> = self.helpers.keys().copied().collect();
        honest.into_iter().for_each(|who| self.show(who, statements));
    }

    fn sign(&self, who: PartyId, kind: Kind, attempt: u32, body: Vec<u8>) -> Statement {
        Statement::sign(self.setting.plan.id(), &keys_of(who), StatementSlot::new(kind, attempt), body)
    }

    /// Calls an attempt and gives all masks to everybody, so that every helper finds all of them right.
    fn call(&mut self, attempt: u32) {
        let call = self.sign(self.setting.lost, Kind::Checked, attempt, Vec::new());
        let key = self.sign(self.setting.lost, Kind::EncryptionKey, attempt, self.owner_key.clone());
        self.show_all(&[key, call.clone()]);
        for who in self.corrupt.clone() {
            // Its mask is made by an honest machine.
            let mut machine = self.setting.join(who, Memory::Kept, 0);
            machine.handle(Input::Start, &mut test_rng(0));
            let payload: Bytes =
                rewrite(&self.template, |_| [self.keys(), vec![call.clone()]].concat()).unwrap().into();
            let (from, slot, channel) = (self.setting.lost, ITEMS, Channel::Broadcast);
            let said = said_by(machine.handle(Input::Message { from, slot, channel, payload }, &mut test_rng(0)));
            self.said.extend(said.iter().flat_map(|payload| statements_of(payload)));
        }
        let masks: Vec<_> = self.of(Kind::Dealing, attempt).cloned().collect();
        assert_eq!(masks.len(), self.helpers.len() + self.corrupt.len());
        self.show_all(&masks);
        assert_eq!(self.of(Kind::Checked, attempt).count(), self.helpers.len());
    }

    fn of(&self, kind: Kind, attempt: u32) -> impl Iterator<Item = &Statement> {
        self.said.iter().filter(move |said| said.slot() == StatementSlot::new(kind, attempt))
    }

    /// The request for the masks of these helpers.
    fn request(&mut self, attempt: u32, helpers: &[PartyId]) -> Statement {
        let mut body = Vec::new();
        for helper in helpers {
            let mask = self.of(Kind::Dealing, attempt).find(|mask| mask.author() == *helper).unwrap();
            body.extend_from_slice(&helper.get().to_be_bytes());
            body.extend_from_slice(&mask.digest());
        }
        let request = self.sign(self.setting.lost, Kind::Request, attempt, body);
        self.requests.insert((attempt, request.digest()), helpers.to_vec());
        request
    }

    /// Shows one helper that all that a request lists have accepted it. If they have not, shows nothing, or those that
    /// have.
    fn press(&mut self, attempt: u32, request: &Statement, who: PartyId, even_if_not: bool) {
        let digest = request.digest();
        let willing = self.corrupt.iter().map(|who| self.sign(*who, Kind::Accepted, attempt, digest.to_vec()));
        let accepted: Vec<_> = self.of(Kind::Accepted, attempt).cloned().chain(willing).collect();
        let listed = self.requests[&(attempt, digest)].clone();
        let of_this = |said: &&Statement| said.body()[..] == digest && listed.contains(&said.author());
        let mut signed: Vec<_> = accepted.iter().filter(of_this).collect();
        if signed.len() < listed.len() && !even_if_not {
            return self.show(who, &accepted);
        }
        signed.sort_unstable_by_key(|said| said.author());
        let mut body = [&[Kind::Accepted as u8][..], &attempt.to_be_bytes()].concat();
        body.extend_from_slice(&32_u32.to_be_bytes());
        body.extend_from_slice(&digest);
        for said in signed {
            body.extend_from_slice(&said.author().get().to_be_bytes());
            body.extend_from_slice(said.signature());
        }
        assert!(QuorumCertificate::decode(&body).is_ok());
        let all = self.sign(self.setting.lost, Kind::Acceptances, attempt, body);
        self.show(who, &[accepted, vec![all]].concat());
    }

    /// The answers so far.
    fn answered(&self) -> BTreeSet<Answered> {
        let answers = self.said.iter().filter(|said| said.slot().kind == Kind::Answer);
        answers.map(|said| (said.author(), said.slot().number, said.body()[..32].try_into().unwrap())).collect()
    }
}

fn said_by(effects: Effects) -> Vec<Bytes> {
    let said = effects.into_iter().filter_map(|effect| match effect {
        Effect::Send { slot: ITEMS, payload, .. } => Some(payload),
        _ => None,
    });
    said.collect()
}
