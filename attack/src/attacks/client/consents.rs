//! Consents that were given once are used again: an approval of a rotation, an approved enable, a signed disable.

use std::{
    fs,
    time::{Duration, Instant},
};

use theta_client::{CeremonyRequest, Client, ClientFile, Credentials, KeyChange, state_statement};
use theta_names::{KeyState, Operation};
use theta_statements::{Approval, ApprovalTerms, RequestTerms, SignedRequest, SigningKey, UnixTime, Validity};
use theta_wire::v1;

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who, random},
    door::{Http, Shown, Windows},
    group::{Group, NODES},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "consents",
    promise: "Consents are used once: nothing that was approved or signed for one act is good for another, or for the same again",
    who: Who::Client,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const KEY: &str = "beacon";
const RULES: &str = "[[rule]]\nname = \"with-ann\"\neffect = \"allow\"\nclients = [\"client\"]\nkeys = [\"beacon\"]\n\
                     operations = [\"keys.rotate\", \"keys.enable\", \"keys.disable\"]\napprovals = { of = [\"ann\"], need = 1 }\n\
                     [[rule]]\nname = \"officer-alone\"\neffect = \"allow\"\nclients = [\"officer\"]\nkeys = [\"beacon\"]\n\
                     operations = [\"keys.enable\", \"keys.disable\"]\n";
/// The number of ended ceremonies of a key that a node remembers; one more displaces the oldest.
const REPORTS: usize = 16;
const CHANGE: &str = "/theta.v1.ThresholdKeys/ChangeKeyState";
/// How long the group has to decide what was signed.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two looks.
const AGAIN: Duration = Duration::from_millis(100);
/// A minute in milliseconds.
const MINUTE: u64 = 60_000;

/// The people who consent, and the client that has recorded their consents.
struct People {
    client: Client,
    ann: SigningKey,
    officer: SigningKey,
    validity: Validity,
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let ceremonies = field.size(REPORTS + 1, 0);
    let people = People::introduce(field.group()).await?;
    let mut broken = Vec::new();
    let (rotations, mut tries) = people.rotate_again(ceremonies, &mut broken).await?;
    tries += people.enable_again(&mut broken).await?;
    tries += people.send_again(field.group(), &mut broken).await?;
    let words = if broken.is_empty() { "nothing came of any".to_owned() } else { broken.join("; ") };
    Ok(Happened {
        kept: broken.is_empty(),
        words: format!("{tries} uses of consents that were used ({rotations} rotation of one approval): {words}"),
        effort: Effort { connections: usize::from(NODES), bytes: 0 },
    })
}

impl People {
    async fn introduce(group: &Group) -> Result<Self, Trouble> {
        let ann = group.tool(&["approver", "new", "--name", "ann"])?;
        let lines = group.add_client("officer")?;
        group.begin_policies_with(&format!("{lines}\n{ann}\n{RULES}")).await?;
        let key = |file: &str| {
            let text = fs::read_to_string(group.path(file))?;
            SigningKey::from_pem(&text).map_err(|error| Trouble::new(error.to_string()))
        };
        let now = UnixTime::now();
        let validity = Validity { from: UnixTime(now.0.saturating_sub(MINUTE)), until: now.plus(30 * MINUTE) };
        let file = group.path("officer.client");
        let signer = ClientFile::load(&file)?.signer(&file)?;
        let officer = signer.ok_or_else(|| Trouble::new("theta client new made no key to sign requests with"))?;
        Ok(Self { client: group.client()?, ann: key("ann.key")?, officer, validity })
    }

    /// The client with ann's approval of this statement.
    fn approved(&self, operation: Operation, statement: &[u8]) -> Result<Client, Trouble> {
        let ask = self.client.ask_for(operation, Some(KEY), statement);
        let terms = ApprovalTerms::of(&ask, self.validity).map_err(|error| Trouble::new(error.to_string()))?;
        let approvals = vec![Approval::sign(terms, &self.ann)];
        Ok(self.client.clone().with_credentials(Credentials { approvals, ..Credentials::default() }))
    }

    fn approved_state(&self, state: KeyState, generation: u64) -> Result<Client, Trouble> {
        self.approved(operation(state), &statement(state, generation)?)
    }

    /// Uses one approval of a rotation again: unchanged, with other nonces, and after the nodes have forgotten the
    /// ceremony.
    async fn rotate_again(&self, ceremonies: usize, broken: &mut Vec<String>) -> Result<(u32, usize), Trouble> {
        let change = KeyChange::Rotate { key: name()? };
        let request = CeremonyRequest { nonce: random()?, change: change.clone() };
        let with = self.approved(Operation::KeysRotate, &request.encode())?;
        let before = self.newest().await?;
        let first = with.hold_request(request.clone(), |_| {}).await?;
        let mut tries = 0;
        for _ in 0..3 {
            tries += 2;
            let again = with.hold_request(request.clone(), |_| {}).await;
            if again.is_ok_and(|again| again.id != first.id) {
                broken.push("the approved request was held twice".to_owned());
            }
            if with.hold(change.clone(), |_| {}).await.is_ok() {
                broken.push("the approval was good for another request".to_owned());
            }
        }
        for _ in 0..ceremonies {
            self.client.hold(KeyChange::Refresh { key: name()?, version: None }, |_| {}).await?;
        }
        if ceremonies > 0 {
            tries += 1;
            if with.hold_request(request, |_| {}).await.is_ok_and(|again| again.id != first.id) {
                broken.push("the approved request was held again when it was forgotten".to_owned());
            }
        }
        let rotations = self.newest().await?.saturating_sub(before);
        if rotations != 1 {
            broken.push(format!("one approval made {rotations} rotations"));
        }
        Ok((rotations, tries))
    }

    /// Sends an enable again that was approved before a newer disable.
    async fn enable_again(&self, broken: &mut Vec<String>) -> Result<usize, Trouble> {
        let next = self.client.next_generation(&name()?).await?;
        for (generation, state) in
            [(next, KeyState::Disabled), (next + 1, KeyState::Active), (next + 2, KeyState::Disabled)]
        {
            self.approved_state(state, generation)?.change_state_at(KEY, None, state, generation).await?;
        }
        let old = self.approved_state(KeyState::Active, next + 1)?;
        let tries = [next + 1, next + 3, next + 4];
        for generation in tries {
            if old.change_state_at(KEY, None, KeyState::Active, generation).await.is_ok() {
                broken.push(format!("an old enable was made as generation {generation}"));
            }
        }
        if self.client.sign(KEY, "disabled".into()).await.is_ok() {
            broken.push("the key signs though it is disabled".to_owned());
        }
        Ok(tries.len())
    }

    /// Sends a change that the officer signed to one node, which is enough, until the group has decided it.
    async fn decide(&self, carrier: &Http, request: &v1::ChangeKeyStateRequest) -> Result<(), Trouble> {
        if !carrier.call(CHANGE, request).await? {
            return Err(Trouble::new("a node does not take what was signed"));
        }
        let since = Instant::now();
        while self.client.next_generation(&name()?).await? <= request.generation {
            if since.elapsed() > PATIENCE {
                return Err(Trouble::new("the group does not decide what was signed"));
            }
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }

    /// Sends a change that the officer signed again to each node, as anybody can who has recorded it.
    async fn send_again(&self, group: &Group, broken: &mut Vec<String>) -> Result<usize, Trouble> {
        let next = self.client.next_generation(&name()?).await?;
        let (enable, disable) = (self.signed(KeyState::Active, next)?, self.signed(KeyState::Disabled, next + 1)?);
        let (mut tries, mut decided) = (0, false);
        for node in group.nodes() {
            let carrier = Http::open(node, &Shown::Certificate(&group.client_identity()?), Windows::default()).await?;
            if !std::mem::replace(&mut decided, true) {
                self.decide(&carrier, &enable).await?;
                self.decide(&carrier, &disable).await?;
            }
            let later = v1::ChangeKeyStateRequest { generation: next + 2, ..enable.clone() };
            let bare = v1::ChangeKeyStateRequest { generation: 0, ..enable.clone() };
            for request in [enable.clone(), later, bare] {
                tries += 1;
                // A node that has not heard of the decision yet hears of it soon.
                let since = Instant::now();
                while carrier.call(CHANGE, &request).await? {
                    if since.elapsed() > PATIENCE {
                        broken.push(format!("node {} takes a signed change again", node.id));
                        break;
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
        if self.client.next_generation(&name()?).await? != next + 2 {
            broken.push("the group decided a signed change again".to_owned());
        }
        if self.client.sign(KEY, "disabled again".into()).await.is_ok() {
            broken.push("the key signs though it was disabled after what was sent again".to_owned());
        }
        Ok(tries)
    }

    fn signed(&self, state: KeyState, generation: u64) -> Result<v1::ChangeKeyStateRequest, Trouble> {
        let statement = statement(state, generation)?;
        let ask = self.client.ask_for(operation(state), Some(KEY), &statement);
        let terms =
            RequestTerms::of(&ask, self.validity, random()?).map_err(|error| Trouble::new(error.to_string()))?;
        Ok(v1::ChangeKeyStateRequest {
            key: KEY.to_owned(),
            state: state.name().to_owned(),
            generation,
            signed_request: SignedRequest::sign(terms, &self.officer).encode().into(),
            ..Default::default()
        })
    }

    /// The highest version of the key that a node lists.
    async fn newest(&self) -> Result<u32, Trouble> {
        let (keys, _) = self.client.list_keys().await;
        let versions = keys.iter().filter(|key| key.info.name == KEY).map(|key| key.info.version);
        versions.max().ok_or_else(|| Trouble::new("no node lists the key"))
    }
}

const fn operation(state: KeyState) -> Operation {
    if matches!(state, KeyState::Active) { Operation::KeysEnable } else { Operation::KeysDisable }
}

fn statement(state: KeyState, generation: u64) -> Result<Vec<u8>, Trouble> {
    Ok(state_statement(&name()?, None, state, generation))
}

fn name<T: core::str::FromStr>() -> Result<T, Trouble> {
    KEY.parse().map_err(|_| Trouble::new("bug: no name of a key"))
}
