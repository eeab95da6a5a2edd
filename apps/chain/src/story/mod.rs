//! The story, act by act.

mod show;
mod slots;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use theta::{exit::Failure, output::Output};
use theta_cluster::Show;
use tokio::time::sleep;

use self::show::{Row, table};
use crate::{
    market::{Asset, Ending, Order},
    net::{Network, THRESHOLD, VALIDATORS, Wishes},
    validator::{Attempt, Behaviour, View},
};

/// The validator that misbehaves.
const LIAR: u16 = 4;
/// How long an order may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// What Alice pays for gold each time.
const AMOUNT: u64 = 50_000;
/// How many sealed orders there are: with a proposer in turn, the front-runner proposes some of them.
const SEALED: usize = 10;
/// The most orders until a front-runner that proposes every fourth block has traded before one.
const MOST_PLAIN: usize = 40;

/// Plays all acts, in a directory that does not exist yet.
///
/// # Errors
/// [`Failure`]: something did not happen as it must.
pub async fn play(program: &Path, cometbft: &Path, dir: &Path, output: Output) -> Result<(), Failure> {
    let show = Show::new(output);
    show.act(format_args!(
        "{VALIDATORS} nodes make a key that nobody holds; any {THRESHOLD} of them open what is sealed to it"
    ));
    let wishes =
        Wishes { chain: "demo-exchange".to_owned(), plain_orders: true, liar: Some((LIAR, Behaviour::FrontRuns)) };
    let mut network = Network::create(program.to_owned(), cometbft.to_owned(), dir, &wishes).await?;
    show.say("each node takes the word of the validator beside it, and of no other");

    show.act(format_args!("{VALIDATORS} CometBFT validators begin a chain: an exchange of coin and gold"));
    let began = Instant::now();
    network.start_validators().await?;
    network.reach(2, PATIENCE).await?;
    show.good(format_args!("all are at block 2 or later, {:.1} s after their start", began.elapsed().as_secs_f64()));
    show.say(format_args!("validator {LIAR} is a front-runner, and node {LIAR} its accomplice"));

    let mut rows = vec![plain_orders(&network, &show).await?];
    rows.push(sealed_orders(&network, &show).await?);
    slots::race(&network, &show).await?;
    rows.push(a_validator_dies(&mut network, &show).await?);
    rows.push(false_keys(&mut network, &show).await?);
    rows.push(the_chain_halts(&mut network, &show).await?);
    rows.push(false_execution(&mut network, &show).await?);
    table(&show, &rows)
}

async fn plain_orders(network: &Network, show: &Show) -> Result<Row, Failure> {
    show.act("Orders that everybody can read");
    let mut tally = Tally::begin("readable", network).await?;
    for turn in 0..MOST_PLAIN {
        shift(network, turn).await?;
        let traded = trade(network, false, 1).await?;
        tally.add(&traded);
        if traded.lost() > 0 {
            let row = tally.end(network).await?;
            show.good(format_args!(
                "Alice bought for {AMOUNT} coin: {} gold instead of {}, because validator {LIAR} bought before her and sold after",
                traded.got, traded.expected
            ));
            show.say(format_args!("the front-runner gained {} coin with order {} that it saw", row.gained, row.orders));
            return Ok(row);
        }
    }
    Err(Failure::Failed(format!("the front-runner did not trade before any of {MOST_PLAIN} orders")))
}

async fn sealed_orders(network: &Network, show: &Show) -> Result<Row, Failure> {
    show.act("The same orders, sealed until their place is decided");
    let row = sealed(network, "sealed", SEALED).await?;
    let attempts = until_tried(network, SEALED / 2).await?;
    if attempts.iter().any(|attempt| attempt.in_time) || row.lost != 0 || row.gained != 0 {
        return Err(Failure::Failed(format!("the front-runner read a sealed order in time: {attempts:?}")));
    }
    show.good(format_args!("{} orders, all at the price at which they were given", row.orders));
    if let Some(attempt) = attempts.first() {
        show.say(format_args!("validator {LIAR} tried to open each of them before it had its place:"));
        show.aside(format_args!("its own node: {}", attempt.own_node));
        for other in &attempt.other_nodes {
            show.aside(other);
        }
        show.aside(format_args!("the ciphertext under its own name: {}", attempt.copy));
    }
    show.good("none was read in time");
    Ok(row)
}

async fn a_validator_dies(network: &mut Network, show: &Show) -> Result<Row, Failure> {
    const VICTIM: u16 = 3;
    show.act(format_args!("Validator {VICTIM} and its node are killed (SIGKILL), and come back"));
    network.kill_validator(VICTIM)?;
    network.kill_node(VICTIM)?;
    let row = sealed(network, "one is dead", 4).await?;
    show.good(format_args!("{} orders without it", row.orders));
    network.start_node(VICTIM).await?;
    network.start_validator(VICTIM).await?;
    let now = network.rpc(1)?.view().await.map_err(unreachable)?;
    let began = Instant::now();
    network.until(VICTIM, PATIENCE, |view| view.height >= now.height && view.ended >= now.ended).await?;
    show.good(format_args!("it has executed what it missed, {:.1} s after its start", began.elapsed().as_secs_f64()));
    Ok(row)
}

async fn false_keys(network: &mut Network, show: &Show) -> Result<Row, Failure> {
    show.act(format_args!("Validator {LIAR} proposes blocks with false keys"));
    network.behave(LIAR, Behaviour::ProposesFalseKeys).await?;
    network.until(LIAR, PATIENCE, |view| view.height > 0).await?;
    let liar = network.rpc(LIAR)?.status().await;
    let mut row = sealed(network, "false keys", 4).await?;
    let mut view = network.rpc(1)?.view().await.map_err(unreachable)?;
    // Its turn comes every fourth block; only then can it lie.
    for turn in 0..MOST_PLAIN {
        if !view.rejections.is_empty() {
            break;
        }
        shift(network, turn).await?;
        row.orders = row.orders.saturating_add(1);
        trade(network, true, 1).await?;
        view = network.rpc(1)?.view().await.map_err(unreachable)?;
    }
    let Some(rejection) = view.rejections.last() else {
        return Err(Failure::Failed("no proposal of the liar was refused".to_owned()));
    };
    let named = liar.is_ok_and(|liar| liar.validator == rejection.proposer);
    if !named {
        return Err(Failure::Failed(format!("somebody else than validator {LIAR} is named: {rejection:?}")));
    }
    show.good(format_args!(
        "validator 1 refused the proposal for block {} and names validator {LIAR}: {}",
        rejection.height, rejection.reason
    ));
    show.good(format_args!("{} orders all the same, at their prices", row.orders));
    Ok(row)
}

async fn the_chain_halts(network: &mut Network, show: &Show) -> Result<Row, Failure> {
    show.act(format_args!("Two of {VALIDATORS} validators stop: the chain halts, and goes on"));
    network.behave(LIAR, Behaviour::Honest).await?;
    network.until(LIAR, PATIENCE, |view| view.height > 0).await?;
    for number in [3, LIAR] {
        network.kill_validator(number)?;
    }
    let before = halted(network).await?;
    show.good(format_args!("block {} is the last; nothing is ordered, so nothing is opened", before.height));
    let order = send(network, true).await?;
    sleep(Duration::from_secs(2)).await;
    let after = network.rpc(1)?.view().await.map_err(unreachable)?;
    if after.height != before.height || after.ended != before.ended {
        return Err(Failure::Failed("a chain without two thirds went on".to_owned()));
    }
    for number in [3, LIAR] {
        network.start_validator(number).await?;
    }
    let mut tally = Tally::begin("after the halt", network).await?;
    tally.add(&order.ended(network, 1).await?);
    show.good("an order that was sent meanwhile is executed, at its price");
    tally.end(network).await
}

async fn false_execution(network: &mut Network, show: &Show) -> Result<Row, Failure> {
    show.act(format_args!("Validator {LIAR} executes blocks so that its own account gains"));
    network.behave(LIAR, Behaviour::ExecutesFalsely).await?;
    let before = network.rpc(1)?.view().await.map_err(unreachable)?;
    let row = sealed(network, "false execution", 4).await?;
    let honest = network.rpc(1)?.view().await.map_err(unreachable)?;
    let mallory = network.traders.mallory.id();
    if honest.account(mallory) != before.account(mallory) {
        return Err(Failure::Failed("the others believe the liar".to_owned()));
    }
    show.good(format_args!(
        "the others go on to block {}: what the liar computes is not the hash in the header",
        honest.height
    ));
    // It does not answer any more, or from the block in which it began to lie.
    let stopped = network.rpc(LIAR)?.view().await.map_or(0, |view| view.height);
    if stopped.saturating_add(2) >= honest.height {
        return Err(Failure::Failed(format!("the liar goes on, to block {stopped}")));
    }
    show.good("it stopped: a validator that computes something else signs nothing");
    Ok(row)
}

/// So many sealed orders, one after the other.
async fn sealed(network: &Network, act: &'static str, count: usize) -> Result<Row, Failure> {
    let mut tally = Tally::begin(act, network).await?;
    for _ in 0..count {
        tally.add(&trade(network, true, 1).await?);
    }
    tally.end(network).await
}

/// Lets none, one or two blocks pass: validators propose in turn, and orders that are sent at the pace of blocks would always meet the same.
async fn shift(network: &Network, turn: usize) -> Result<(), Failure> {
    let now = network.rpc(1)?.view().await.map_err(unreachable)?.height;
    let more = u64::try_from(turn % 3).unwrap_or_default();
    network.until(1, PATIENCE, |view| view.height >= now.saturating_add(more)).await.map(drop)
}

/// Waits until no block has come for a second.
async fn halted(network: &Network) -> Result<View, Failure> {
    let mut last = network.rpc(1)?.view().await.map_err(unreachable)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        sleep(Duration::from_secs(1)).await;
        let now = network.rpc(1)?.view().await.map_err(unreachable)?;
        if now.height == last.height {
            return Ok(now);
        }
        if Instant::now() > deadline {
            return Err(Failure::Failed("a chain without two thirds does not halt".to_owned()));
        }
        last = now;
    }
}

/// What the front-runner tried, once it has tried so often.
async fn until_tried(network: &Network, count: usize) -> Result<Vec<Attempt>, Failure> {
    let view = network.until(LIAR, PATIENCE, |view| view.attempts.len() >= count).await?;
    Ok(view.attempts)
}

/// An order of Alice that was sent.
pub(crate) struct Sent {
    number: u64,
    at: Instant,
    /// What it would get if nobody traded before.
    expected: u64,
}

/// An order that was executed.
pub(crate) struct Traded {
    expected: u64,
    got: u64,
    took: Duration,
}

impl Traded {
    const fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.got)
    }
}

/// Sends an order of Alice: to buy gold, or, when she has little coin left, to sell what she bought.
pub(crate) async fn send(network: &Network, sealed: bool) -> Result<Sent, Failure> {
    let view = network.rpc(1)?.view().await.map_err(unreachable)?;
    let alice = &network.traders.alice;
    let account = view.account(alice.id());
    let order = if account.coin < AMOUNT { Order::sell(account.gold / 2, 0) } else { Order::buy(AMOUNT, 0) };
    let expected = view.pool.after(order.sells, order.amount).map_or(0, |(_, got)| got);
    let (chain, number) = (network.chain(), account.next);
    let tx = if sealed {
        let made = alice.sealed(chain, network.key(), number, &order, &mut theta::random::generator()?);
        made.map_err(Failure::internal)?
    } else {
        alice.plain(chain, number, order)
    };
    let at = Instant::now();
    match network.rpc(1)?.broadcast(&tx).await.map_err(unreachable)? {
        (0, _) => Ok(Sent { number, at, expected }),
        (_, log) => Err(Failure::Failed(format!("validator 1 refuses an order: {log}"))),
    }
}

impl Sent {
    /// Waits until it is executed, as this validator has it.
    pub(crate) async fn ended(self, network: &Network, validator: u16) -> Result<Traded, Failure> {
        let Self { number, at, expected } = self;
        let alice = network.traders.alice.id();
        let view = network.until(validator, PATIENCE, |view| view.outcome(alice, number).is_some()).await?;
        match view.outcome(alice, number).map(|outcome| outcome.ending) {
            Some(Ending::Executed { got, .. }) => Ok(Traded { expected, got, took: at.elapsed() }),
            ending => Err(Failure::Failed(format!("an order was not executed: {ending:?}"))),
        }
    }
}

async fn trade(network: &Network, sealed: bool, validator: u16) -> Result<Traded, Failure> {
    send(network, sealed).await?.ended(network, validator).await
}

/// What an act did to everybody.
struct Tally {
    act: &'static str,
    before: u64,
    orders: u64,
    lost: u64,
    took: Vec<Duration>,
}

impl Tally {
    async fn begin(act: &'static str, network: &Network) -> Result<Self, Failure> {
        Ok(Self { act, before: wealth(network).await?, orders: 0, lost: 0, took: Vec::new() })
    }

    fn add(&mut self, traded: &Traded) {
        self.orders = self.orders.saturating_add(1);
        self.lost = self.lost.saturating_add(traded.lost());
        self.took.push(traded.took);
    }

    async fn end(mut self, network: &Network) -> Result<Row, Failure> {
        let after = wealth(network).await?;
        let gained = i64::try_from(after).unwrap_or(0).saturating_sub(i64::try_from(self.before).unwrap_or(0));
        self.took.sort_unstable();
        let median = self.took.get(self.took.len() / 2).copied().unwrap_or_default();
        let p50_ms = u64::try_from(median.as_millis()).unwrap_or(u64::MAX);
        Ok(Row { act: self.act, orders: self.orders, lost: self.lost, gained, p50_ms })
    }
}

/// The front-runner's coin and what the exchange would give for its gold beyond that of the beginning.
async fn wealth(network: &Network) -> Result<u64, Failure> {
    const BEGAN_WITH: u64 = 1_000_000;
    let view = network.rpc(1)?.view().await.map_err(unreachable)?;
    let account = view.account(network.traders.mallory.id());
    let more = account.gold.saturating_sub(BEGAN_WITH);
    Ok(account.coin.saturating_add(view.pool.after(Asset::Gold, more).map_or(0, |(_, got)| got)))
}

fn unreachable(error: impl core::fmt::Display) -> Failure {
    Failure::NoAnswer(error.to_string())
}
