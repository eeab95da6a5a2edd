//! The application: what a validator answers to CometBFT.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tendermint_proto::v0_38::{
    abci::{
        self, ExecTxResult, RequestCheckTx, RequestFinalizeBlock, RequestInitChain, RequestPrepareProposal,
        RequestProcessProposal, RequestQuery, RequestVerifyVoteExtension, request::Value as Asked,
        response::Value as Answer, response_apply_snapshot_chunk, response_offer_snapshot,
        response_process_proposal::ProposalStatus, response_verify_vote_extension::VerifyStatus,
    },
    types::{BlockParams, ConsensusParams},
};
use theta::exit::Failure;
use tokio::sync::Notify;

use super::{
    Behaviour, ValidatorFile, View,
    files::secret_of,
    host::ordered,
    records::{KEPT_REJECTIONS, Rejection},
    spy::Spy,
};
use crate::{
    abci::Application,
    market::{Genesis, Market, Opening, SealId, Trader, Transaction},
};

/// The name of the file with the state of the last block.
const STATE: &str = "state";
/// How many messages a validator proposes that floods the order: more than nodes take at one height.
const FLOOD: usize = 5_000;
/// Codes of transactions that have no place.
const REFUSED: u32 = 1;
/// The longest block, in bytes.
const MOST_BLOCK: i64 = 1 << 20;
/// Room that CometBFT counts for each transaction besides its bytes.
const OVERHEAD: usize = 8;

/// One validator's application.
pub struct Validator {
    state: Mutex<State>,
    file: PathBuf,
    behaviour: Behaviour,
    /// The account of a dishonest one.
    account: Option<Trader>,
    /// What it signs with, and its place in the genesis.
    signer: Trader,
    place: u16,
    /// Whoever opens orders waits for new ones here.
    pub(super) ordered: Notify,
}

struct State {
    /// After the last block that is kept. `None` before the chain begins.
    committed: Option<Market>,
    /// After the block that was executed and is not kept yet.
    decided: Option<Market>,
    /// What transactions from outside are checked by: with those that wait.
    checked: Option<Market>,
    /// Keys of orders that have a place, from the group's node beside this validator.
    keys: BTreeMap<SealId, [u8; 32]>,
    rejections: VecDeque<Rejection>,
    spy: Spy,
}

impl Validator {
    /// The validator of this directory, with the state that it kept.
    pub(crate) fn open(dir: &Path, config: &ValidatorFile) -> Result<Arc<Self>, Failure> {
        let file = dir.join(STATE);
        let committed = match fs::read(&file) {
            Ok(bytes) => {
                Some(Market::decode(&bytes).map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::reading(&file, &error)),
        };
        let account = match &config.account {
            None => None,
            Some(secret) => Trader::from_seed(&secret_of(secret)?),
        };
        let signer = Trader::from_seed(&secret_of(&config.secret)?);
        let signer = signer.ok_or_else(|| Failure::Usage("the validator's secret is refused".to_owned()))?;
        let state = State {
            checked: committed.clone(),
            committed,
            decided: None,
            keys: BTreeMap::new(),
            rejections: VecDeque::new(),
            spy: Spy::default(),
        };
        let (state, ordered) = (Mutex::new(state), Notify::new());
        let (behaviour, place) = (config.behaviour, config.place);
        Ok(Arc::new(Self { state, file, behaviour, account, signer, place, ordered }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No state is left half-changed: it is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The orders that have a place in a block that this validator keeps, and whose key it does not know: name and ciphertext.
    pub(super) fn unopened(&self) -> Vec<(SealId, Bytes)> {
        let state = self.state();
        let waiting = state.committed.iter().flat_map(Market::waiting);
        let unopened = waiting.filter(|waiting| waiting.verdict.is_none() && !state.keys.contains_key(&waiting.id));
        unopened.map(|waiting| (waiting.id, waiting.ciphertext.clone())).collect()
    }

    /// The chain's state after the last block that is kept.
    pub(super) fn market(&self) -> Option<Market> {
        self.state().committed.clone()
    }

    /// Remembers the key of an order, to propose it.
    pub(super) fn learn(&self, id: SealId, key: [u8; 32]) {
        self.state().keys.insert(id, key);
    }

    /// What a front-runner knows.
    pub(super) fn spy<T>(&self, look: impl FnOnce(&mut Spy) -> T) -> T {
        look(&mut self.state().spy)
    }

    /// The account of a dishonest validator.
    pub(super) const fn account(&self) -> Option<&Trader> {
        self.account.as_ref()
    }

    fn info(&self) -> abci::ResponseInfo {
        let state = self.state();
        let (height, hash) = match &state.committed {
            None => (0, Bytes::new()),
            Some(market) => (height_of(market), Bytes::copy_from_slice(&market.hash())),
        };
        abci::ResponseInfo {
            data: "theta-chain".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            app_version: 1,
            last_block_height: height,
            last_block_app_hash: hash,
        }
    }

    fn init_chain(&self, request: &RequestInitChain) -> Option<abci::ResponseInitChain> {
        let genesis = serde_json::from_slice::<Genesis>(&request.app_state_bytes);
        let market = genesis
            .map_err(|error| error.to_string())
            .and_then(|genesis| Market::new(&request.chain_id, &genesis).map_err(|error| error.to_string()));
        let market = market.inspect_err(|error| tracing::error!(error, "the genesis cannot be used")).ok()?;
        let app_hash = Bytes::copy_from_slice(&market.hash());
        let mut state = self.state();
        (state.committed, state.checked) = (Some(market.clone()), Some(market));
        // What a block costs those who check it grows with its bytes, and a host has to bring it to its node.
        let block = Some(BlockParams { max_bytes: MOST_BLOCK, max_gas: -1 });
        let consensus_params = Some(ConsensusParams { block, ..ConsensusParams::default() });
        Some(abci::ResponseInitChain { consensus_params, validators: Vec::new(), app_hash })
    }

    fn check(&self, request: &RequestCheckTx) -> abci::ResponseCheckTx {
        let mut state = self.state();
        let Some(checked) = &mut state.checked else {
            return abci::ResponseCheckTx { code: REFUSED, ..Default::default() };
        };
        if matches!(Transaction::decode(&request.tx), Ok(Transaction::Opening(_))) {
            // A false one costs four exponentiations and needs nobody's signature. Those who propose have true ones from their nodes.
            let log = "openings come with proposals, not from outside".to_owned();
            return abci::ResponseCheckTx { code: REFUSED, log, ..Default::default() };
        }
        match checked.apply(&request.tx) {
            Ok(()) => {
                if self.behaviour == Behaviour::FrontRuns {
                    state.spy.see(&request.tx);
                }
                abci::ResponseCheckTx::default()
            }
            Err(refusal) => abci::ResponseCheckTx { code: REFUSED, log: refusal.to_string(), ..Default::default() },
        }
    }

    /// Proposes a block: first the keys of orders that have a place, then what came from outside.
    fn prepare(&self, request: RequestPrepareProposal) -> abci::ResponsePrepareProposal {
        let state = self.state();
        let Some(committed) = &state.committed else { return abci::ResponsePrepareProposal::default() };
        let mut market = committed.clone();
        let mut wanted = keys_to_propose(&market, &state.keys, self.behaviour);
        if self.behaviour == Behaviour::FloodsOrder {
            let (chain, last) = (market.terms().chain(), market.last_number(self.place));
            let noise = |number| ordered(&self.signer, chain, (self.place, number), Bytes::from_static(b"noise"));
            wanted.extend((last.saturating_add(1)..).take(FLOOD).map(noise));
        }
        wanted.extend(match (self.behaviour, &self.account) {
            (Behaviour::FrontRuns, Some(account)) => state.spy.arrange(&market, account, request.txs),
            _ => request.txs,
        });
        let mut room = usize::try_from(request.max_tx_bytes).unwrap_or(0);
        let mut txs = Vec::new();
        for tx in wanted {
            let Some(rest) = room.checked_sub(tx.len().saturating_add(OVERHEAD)) else { break };
            if self.proposes_anything() || market.apply(&tx).is_ok() {
                room = rest;
                txs.push(tx);
            }
        }
        abci::ResponsePrepareProposal { txs }
    }

    /// Whether it is one of those that propose and accept what has no place.
    fn proposes_anything(&self) -> bool {
        matches!(self.behaviour, Behaviour::ProposesFalseKeys | Behaviour::FloodsOrder)
    }

    /// Whether a proposed block may be one: every transaction in it has its place there.
    fn process(&self, request: &RequestProcessProposal) -> abci::ResponseProcessProposal {
        let mut state = self.state();
        let refused = match &state.committed {
            None => Some("the chain has not begun".to_owned()),
            Some(committed) => {
                let mut market = committed.clone();
                request.txs.iter().find_map(|tx| market.apply(tx).err()).map(|refusal| refusal.to_string())
            }
        };
        let status = match refused.filter(|_| !self.proposes_anything()) {
            None => ProposalStatus::Accept,
            Some(reason) => {
                let proposer = hex::encode_upper(&request.proposer_address);
                tracing::warn!(height = request.height, proposer, reason, "a proposal is refused");
                state.rejections.push_back(Rejection { height: request.height, proposer, reason });
                while state.rejections.len() > KEPT_REJECTIONS {
                    state.rejections.pop_front();
                }
                ProposalStatus::Reject
            }
        };
        abci::ResponseProcessProposal { status: status.into() }
    }

    /// Executes a decided block.
    fn finalize(&self, request: &RequestFinalizeBlock) -> Option<abci::ResponseFinalizeBlock> {
        let mut state = self.state();
        let mut market = state.committed.clone()?;
        let result = |tx: &Bytes| match market.apply(tx) {
            Ok(()) => ExecTxResult::default(),
            Err(refusal) => ExecTxResult { code: REFUSED, log: refusal.to_string(), ..Default::default() },
        };
        let tx_results = request.txs.iter().map(result).collect();
        market.end_block(u64::try_from(request.height).unwrap_or_default());
        if let (Behaviour::ExecutesFalsely, Some(account)) = (self.behaviour, &self.account) {
            market.steal(account.id(), 1);
        }
        let app_hash = Bytes::copy_from_slice(&market.hash());
        state.decided = Some(market);
        Some(abci::ResponseFinalizeBlock { tx_results, app_hash, ..Default::default() })
    }

    /// Keeps the executed block. A validator that cannot must not go on: it would answer from a state that it loses.
    fn commit(&self) -> Option<abci::ResponseCommit> {
        let mut state = self.state();
        let market = state.decided.take()?;
        if let Err(error) = keep(&self.file, &market.encode()) {
            tracing::error!(%error, file = %self.file.display(), "the state cannot be kept");
            return None;
        }
        let wanted: Vec<SealId> = market.waiting().filter(|it| it.verdict.is_none()).map(|it| it.id).collect();
        state.keys.retain(|id, _| wanted.contains(id));
        (state.checked, state.committed) = (Some(market.clone()), Some(market));
        drop(state);
        self.ordered.notify_waiters();
        Some(abci::ResponseCommit { retain_height: 0 })
    }

    fn query(&self, request: &RequestQuery) -> abci::ResponseQuery {
        let state = self.state();
        let view = match (request.path.as_str(), &state.committed) {
            ("/view", Some(market)) => {
                let view = View::of(market, state.rejections.iter().cloned().collect(), state.spy.attempts());
                serde_json::to_vec(&view).ok()
            }
            _ => None,
        };
        match view {
            Some(value) => abci::ResponseQuery { value: value.into(), ..Default::default() },
            None => abci::ResponseQuery { code: REFUSED, log: "ask for /view".to_owned(), ..Default::default() },
        }
    }
}

impl Application for Validator {
    fn answer(&self, request: Asked) -> Option<Answer> {
        Some(match request {
            Asked::Echo(echo) => Answer::Echo(abci::ResponseEcho { message: echo.message }),
            Asked::Flush(_) => Answer::Flush(abci::ResponseFlush {}),
            Asked::Info(_) => Answer::Info(self.info()),
            Asked::InitChain(request) => Answer::InitChain(self.init_chain(&request)?),
            Asked::CheckTx(request) => Answer::CheckTx(self.check(&request)),
            Asked::PrepareProposal(request) => Answer::PrepareProposal(self.prepare(request)),
            Asked::ProcessProposal(request) => Answer::ProcessProposal(self.process(&request)),
            Asked::FinalizeBlock(request) => Answer::FinalizeBlock(self.finalize(&request)?),
            Asked::Commit(_) => Answer::Commit(self.commit()?),
            Asked::Query(request) => Answer::Query(self.query(&request)),
            // No snapshots: a new validator replays the blocks. Any machine in CometBFT's network can ask for one, and is told that there is none.
            Asked::ListSnapshots(_) => Answer::ListSnapshots(abci::ResponseListSnapshots::default()),
            Asked::LoadSnapshotChunk(_) => Answer::LoadSnapshotChunk(abci::ResponseLoadSnapshotChunk::default()),
            Asked::OfferSnapshot(_) => Answer::OfferSnapshot(abci::ResponseOfferSnapshot {
                result: response_offer_snapshot::Result::Reject.into(),
            }),
            Asked::ApplySnapshotChunk(_) => Answer::ApplySnapshotChunk(abci::ResponseApplySnapshotChunk {
                result: response_apply_snapshot_chunk::Result::Abort.into(),
                ..Default::default()
            }),
            // No vote extensions: keys prove themselves.
            Asked::ExtendVote(_) => Answer::ExtendVote(abci::ResponseExtendVote::default()),
            Asked::VerifyVoteExtension(request) => Answer::VerifyVoteExtension(extension(&request)),
        })
    }
}

/// Honest validators extend votes by nothing, which all of them have to take.
fn extension(request: &RequestVerifyVoteExtension) -> abci::ResponseVerifyVoteExtension {
    let status = if request.vote_extension.is_empty() { VerifyStatus::Accept } else { VerifyStatus::Reject };
    abci::ResponseVerifyVoteExtension { status: status.into() }
}

fn height_of(market: &Market) -> i64 {
    i64::try_from(market.height()).unwrap_or(i64::MAX)
}

/// The keys to propose, in the order of their orders' places.
fn keys_to_propose(market: &Market, keys: &BTreeMap<SealId, [u8; 32]>, behaviour: Behaviour) -> Vec<Bytes> {
    let opening = |id: SealId, key: [u8; 32]| Transaction::Opening(Opening { id, key }).encode();
    let undecided = market.waiting().filter(|waiting| waiting.verdict.is_none()).map(|waiting| waiting.id);
    if behaviour == Behaviour::ProposesFalseKeys {
        // One bit of a true key, or any key where there is none yet.
        let false_key = |id: SealId| {
            let mut key = keys.get(&id).copied().unwrap_or([7; 32]);
            if let Some(first) = key.first_mut() {
                *first ^= 1;
            }
            opening(id, key)
        };
        return undecided.map(false_key).collect();
    }
    undecided.filter_map(|id| Some(opening(id, *keys.get(&id)?))).collect()
}

/// Puts the state into the place of the one before, so that a crash leaves one of the two.
fn keep(file: &Path, state: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut out = File::create(&new)?;
    out.write_all(state)?;
    out.sync_data()?;
    fs::rename(&new, file)?;
    file.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests;
