//! Changes of the states of keys: all nodes are asked, the group decides, and its ledger says what was decided.

use std::time::Duration;

use theta_ledger::LedgerState;
use theta_names::{KeyState, MOST_GENERATIONS_AHEAD, NodeId, Operation, Version};
use theta_schemes::keys::KeyName;
use theta_statements::StateChange;
use theta_wire::v1;
use tokio::time::{self, Instant};

use crate::{
    Client, ClientError, NodeProblem,
    answer::node,
    fan_out::{self, Problems},
};

/// How long the client waits before it reads the ledger again.
const AGAIN: Duration = Duration::from_millis(150);

/// A change of state, and how it stands.
#[derive(Clone, Debug)]
pub struct StateChanged {
    /// The generation that the change makes.
    pub generation: u64,
    /// Whether the group has decided it: its ledger has it. If not, the key is to be disabled, and so many nodes have stopped using it
    /// that the others are too few; the decision follows by itself.
    pub decided: bool,
    /// The nodes that say that they have taken it, or will as the group decides.
    pub nodes: Vec<NodeId>,
    /// For whom it waits, if it is not decided.
    pub awaits: Vec<NodeId>,
    /// What the other nodes did. They follow the ledger when they are back.
    pub problems: Vec<NodeProblem>,
}

impl StateChanged {
    /// What is so already, by the change of this generation.
    #[must_use]
    pub const fn before(generation: u64) -> Self {
        Self { generation, decided: true, nodes: Vec::new(), awaits: Vec::new(), problems: Vec::new() }
    }
}

/// The end of a key, as the ledger has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    /// It is destroyed.
    Destroyed,
    /// It will be destroyed at this time, in seconds since 1970, unless it is enabled before.
    Doomed(u64),
}

/// The statement of a change of state, for those who approve or sign it elsewhere. Without a version it concerns the whole
/// key. The generation is the one that the change makes ([`Client::next_generation`]).
#[must_use]
pub fn state_statement(key: &KeyName, version: Option<Version>, state: KeyState, generation: u64) -> Vec<u8> {
    StateChange { key: key.clone(), version, state, generation, not_before: 0 }.encode()
}

/// The longest answer, in bytes: it has the versions of the key.
const MOST_ANSWERED: usize = 1 << 20;

/// What the nodes answered.
struct Answers {
    /// Those that took the request.
    nodes: Vec<NodeId>,
    /// Those that have stopped using the key.
    frozen: Vec<NodeId>,
    awaits: Vec<NodeId>,
    /// Whether one says that it is decided. The ledger shows it, if there is one.
    decided: bool,
    problems: Problems,
}

/// How the ledger has a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Decided,
    /// It has another change of that generation, or a later one.
    Passed,
    Open,
}

impl Client {
    /// The generation that the next change of this key's state has to name: the one after the last in the group's ledger.
    ///
    /// # Errors
    /// [`ClientError`] if no node gave anything that is true.
    pub async fn next_generation(&self, name: &KeyName) -> Result<u64, ClientError> {
        if self.known().book().look(LedgerState::height).is_none() {
            return self.next_generation_told(name).await;
        }
        self.renew().await?;
        let generation = |state: &LedgerState| state.keys().get(name).map_or(0, |line| line.generation);
        Ok(self.known().book().look(generation).unwrap_or_default().saturating_add(1))
    }

    /// In a group without a ledger: one more than the highest that a node reports, limited against liars. At most k - 1 nodes lie, so the
    /// k-th highest answer is no higher than an honest one; an answer further above it than honest nodes can be apart is ignored.
    async fn next_generation_told(&self, name: &KeyName) -> Result<u64, ClientError> {
        const OPERATION: &str = "read the key's generation";
        let (lists, problems) = self.key_lists(self.shared.options.timeout).await;
        let of_key = |keys: Vec<v1::KeyInfo>| {
            let of_key = keys.iter().filter(|info| info.name == name.as_str());
            of_key.map(|info| info.generation).max().unwrap_or(0)
        };
        let mut told: Vec<u64> = lists.into_iter().map(|(_, keys)| of_key(keys)).collect();
        told.sort_unstable_by(|a, b| b.cmp(a));
        let Some(anchor) = self.quorum().checked_sub(1).and_then(|place| told.get(place)) else {
            let hopeless = problems.hopeless(OPERATION, self.quorum());
            return Err(
                hopeless.unwrap_or_else(|| ClientError::NoAnswer { operation: OPERATION, nodes: problems.all() })
            );
        };
        let believed = anchor.saturating_add(MOST_GENERATIONS_AHEAD / 2);
        let highest = told.iter().find(|generation| **generation <= believed).unwrap_or(anchor);
        Ok(highest.saturating_add(1))
    }

    /// Changes the state of a key, or of one version of it, to [`KeyState::Active`] (which enables it),
    /// [`KeyState::Disabled`], [`KeyState::Retired`] or [`KeyState::Destroyed`], and waits for the group's decision for as long as the
    /// client's timeout. Each node that is asked to disable a key stops using it at once. Without a version the change is of the whole
    /// key. What the ledger has already is not asked for again.
    ///
    /// The client first reads which generation the change makes ([`Client::next_generation`]).
    ///
    /// # Errors
    /// As [`Client::next_generation`] and [`Client::change_state_at`].
    pub async fn change_state(
        &self,
        key: &str,
        version: Option<Version>,
        state: KeyState,
    ) -> Result<StateChanged, ClientError> {
        let name: KeyName = key.parse()?;
        let generation = self.next_generation(&name).await?;
        let is_so = self.known().book().look(|ledger| {
            let line = ledger.keys().get(&name)?;
            version.map_or(Some(line.state), |version| line.state_of(version))
        });
        // To enable what is enabled ends what some nodes were asked for and the group has not decided.
        if is_so.flatten() == Some(state) && state != KeyState::Active {
            return Ok(StateChanged::before(generation.saturating_sub(1)));
        }
        self.change_state_at(key, version, state, generation).await
    }

    /// Whether a key or one version of it is destroyed or will be, by what this client has read of the group's ledger ([`Client::renew`] and
    /// [`Client::next_generation`] read what is new); `None` also where the group keeps none.
    #[must_use]
    pub fn end_of(&self, name: &KeyName, version: Option<Version>) -> Option<KeyEnd> {
        let end = |ledger: &LedgerState| {
            let line = ledger.keys().get(name)?;
            let (state, doom) = match version {
                None => (Some(line.state), line.doomed),
                Some(version) => (line.state_of(version), line.doom_of(version)),
            };
            if state == Some(KeyState::Destroyed) { Some(KeyEnd::Destroyed) } else { doom.map(KeyEnd::Doomed) }
        };
        self.known().book().look(end).flatten()
    }

    /// Changes the state with a given generation. Approvals cover the generation, and the group does not decide it after another change
    /// of that generation or a later one. A change that was asked for before may be asked for again.
    ///
    /// # Errors
    /// [`ClientError::Undecided`] if the group has not decided it in time: it goes on by itself. Otherwise [`ClientError`] if the nodes
    /// refuse it, or too few can be asked.
    pub async fn change_state_at(
        &self,
        key: &str,
        version: Option<Version>,
        state: KeyState,
        generation: u64,
    ) -> Result<StateChanged, ClientError> {
        self.make_change(StateChange { key: key.parse()?, version, state, generation, not_before: 0 }).await
    }

    /// Asks for a change of state as it is: with it a key can be destroyed later than now, and is disabled until then.
    ///
    /// # Errors
    /// As [`Client::change_state_at`].
    pub async fn make_change(&self, change: StateChange) -> Result<StateChanged, ClientError> {
        const OPERATION: &str = "change the key's state";
        let StateChange { key, state, generation, .. } = change.clone();
        let deadline = Instant::now() + self.shared.options.timeout;
        let answers = self.ask_for_state(&change).await?;
        if answers.nodes.is_empty() {
            let hopeless = answers.problems.hopeless(OPERATION, self.quorum());
            let nodes = answers.problems.all();
            return Err(hopeless.unwrap_or(ClientError::NoAnswer { operation: OPERATION, nodes }));
        }
        let standing = self.await_state(&change, &answers, deadline).await;
        let stopped = state == KeyState::Disabled && self.is_stopped(&change, &answers.frozen);
        let Answers { nodes, awaits, problems, .. } = answers;
        match standing {
            Standing::Decided => {
                let (awaits, problems) = (Vec::new(), problems.all());
                Ok(StateChanged { generation, decided: true, nodes, awaits, problems })
            }
            Standing::Passed => {
                let reason = format!(
                    "another change of {key} was decided first: look at the key, and ask again for generation {} or without one",
                    self.next_generation(&change.key).await?
                );
                Err(ClientError::Refused { operation: OPERATION, code: tonic::Code::Aborted, reason })
            }
            Standing::Open if stopped => {
                Ok(StateChanged { generation, decided: false, nodes, awaits, problems: problems.all() })
            }
            Standing::Open => match problems.hopeless(OPERATION, self.quorum()) {
                Some(error) => Err(error),
                None => Err(ClientError::Undecided {
                    change: format!("{key} is not {} yet", in_words(state)),
                    generation,
                    frozen: answers.frozen,
                    awaits,
                    nodes: problems.all(),
                }),
            },
        }
    }

    async fn ask_for_state(&self, change: &StateChange) -> Result<Answers, ClientError> {
        let StateChange { key, version, state, generation, not_before } = change;
        let operation = match state {
            KeyState::Active => Operation::KeysEnable,
            KeyState::Destroyed => Operation::KeysDestroy,
            KeyState::Pending | KeyState::Retired | KeyState::Disabled => Operation::KeysDisable,
        };
        let statement = change.encode();
        let patience = self.shared.options.timeout;
        let enclosed = self.enclose_for_group(&self.ask_for(operation, Some(key.as_ref()), &statement))?;
        let message = v1::ChangeKeyStateRequest {
            key: key.to_string(),
            version: Version::number_of(*version),
            state: state.name().to_owned(),
            generation: *generation,
            not_before: *not_before,
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
        };
        let connections = self.connections();
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            let request = enclosed.request(&connection, message.clone(), patience);
            async move {
                let mut keys = connection.keys().max_decoding_message_size(MOST_ANSWERED);
                Ok(keys.change_key_state(request).await?.into_inner())
            }
        });
        let problems = Problems::new(&connections);
        let (nodes, frozen, awaits) = (Vec::new(), Vec::new(), Vec::new());
        let mut answers = Answers { nodes, frozen, awaits, decided: false, problems };
        while let Some((from, reply)) = replies.recv().await {
            match reply {
                Ok(v1::ChangeKeyStateResponse { decided, frozen, awaits, .. }) => {
                    answers.nodes.push(from);
                    answers.decided |= decided;
                    if frozen || decided {
                        answers.frozen.push(from);
                    }
                    answers.awaits.extend(awaits.into_iter().filter_map(node));
                }
                Err(problem) => answers.problems.add(from, problem),
            }
        }
        for nodes in [&mut answers.nodes, &mut answers.frozen, &mut answers.awaits] {
            nodes.sort_unstable();
            nodes.dedup();
        }
        // A node may not have heard yet that another one consents, which this client knows by its answer.
        answers.awaits.retain(|node| answers.nodes.binary_search(node).is_err());
        Ok(answers)
    }

    /// Follows the ledger until it has the change, or another one in its place, or the time is over.
    async fn await_state(&self, change: &StateChange, answers: &Answers, deadline: Instant) -> Standing {
        loop {
            if self.known().book().look(LedgerState::height).is_none() {
                // Without a ledger each node decides alone.
                let enough = answers.decided && answers.nodes.len() >= self.quorum();
                return if enough { Standing::Decided } else { Standing::Open };
            }
            if let Err(error) = self.renew().await {
                tracing::debug!(%error, "the ledger was not read");
            }
            let standing = self.known().book().look(|ledger| standing(ledger, change)).unwrap_or(Standing::Open);
            if standing != Standing::Open || Instant::now() + AGAIN >= deadline {
                return standing;
            }
            time::sleep(AGAIN).await;
        }
    }

    /// Whether so many holders have stopped using the key that the others are too few, though t of those that say so lie.
    fn is_stopped(&self, change: &StateChange, frozen: &[NodeId]) -> bool {
        let group = self.quorum();
        let left_too_few = |ledger: &LedgerState| {
            let line = ledger.keys().get(&change.key)?;
            let versions = line.versions.iter().filter(|(number, _)| change.version.is_none_or(|it| it == **number));
            let mut serving = versions.filter_map(|(_, history)| history.serving()).peekable();
            serving.peek()?;
            Some(serving.all(|sharing| {
                let said = |holder: &&u16| frozen.iter().any(|node| node.get() == **holder);
                let stopped = sharing.holders.iter().filter(said).count();
                // As with slots, t is the larger of the group's and the key's.
                let k = usize::from(sharing.k);
                too_few(sharing.holders.len(), stopped, k, k.max(group).saturating_sub(1))
            }))
        };
        self.known().book().look(left_too_few).flatten().unwrap_or(false)
    }
}

/// Whether of n holders, of which so many say that they have stopped, fewer than k can use the key: those that have not stopped, with t liars among
/// those that say so.
fn too_few(n: usize, stopped: usize, k: usize, t: usize) -> bool {
    let liars = t.min(stopped);
    n.saturating_sub(stopped).saturating_add(liars) < k
}

fn standing(ledger: &LedgerState, change: &StateChange) -> Standing {
    let line = ledger.keys().get(&change.key);
    if ledger.is_last_change(change) {
        return Standing::Decided;
    }
    let destroyed = |state: Option<KeyState>| state == Some(KeyState::Destroyed) && change.state == KeyState::Destroyed;
    match line {
        Some(line) if destroyed(change.version.map_or(Some(line.state), |version| line.state_of(version))) => {
            Standing::Decided
        }
        Some(line) if line.generation >= change.generation => Standing::Passed,
        _ => Standing::Open,
    }
}

const fn in_words(state: KeyState) -> &'static str {
    match state {
        KeyState::Active => "enabled",
        KeyState::Pending | KeyState::Retired | KeyState::Disabled | KeyState::Destroyed => state.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 4 holders with k = 2, one liar says that it has stopped, and uses the key with the one that has not been asked.
    #[test]
    fn a_liar_among_those_that_stopped_is_counted_as_going_on() {
        assert!(!too_few(4, 3, 2, 1), "the fourth and a liar are two");
        assert!(too_few(4, 4, 2, 1));
        assert!(!too_few(5, 3, 3, 2));
        assert!(too_few(5, 5, 3, 2));
        assert!(too_few(3, 2, 2, 0), "nobody lies where one node has the key");
        assert!(!too_few(3, 0, 1, 0));
    }
}
