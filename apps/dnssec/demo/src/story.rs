//! The story, act by act.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use theta::{connect, exit::Failure, output::Output};
use theta_cluster::Show;
use tokio::time::sleep;

use crate::{
    agent::{RECORDS, ZONE},
    name_server::{Change, NameServer, Plan},
    operators::{OPERATORS, Operators, POOLED, THRESHOLD},
    permission::NAME_SERVER,
    show::{Row, table},
};

/// The operator who runs the name server, and is taken over.
const TAKEN_OVER: u16 = 1;
/// The others' nodes.
const OTHERS: [u16; 2] = [2, 3];
/// The node that is killed.
const VICTIM: u16 = 3;
/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const BEFORE: Change = Change { name: "www", address: "192.0.2.1", moves: false };
const FALSE: Change = Change { name: "www", address: "192.0.2.66", moves: true };
const AGREED: Change = Change { name: "www", address: "192.0.2.7", moves: true };
const ADDED: Change = Change { name: "vpn", address: "192.0.2.8", moves: false };

/// Where the story takes place.
pub(crate) struct Stage {
    /// This program.
    pub(crate) program: PathBuf,
    /// The PKCS#11 module, if it is not beside this program.
    pub(crate) module: Option<PathBuf>,
    /// A directory that does not exist yet.
    pub(crate) dir: PathBuf,
}

/// Plays all acts; fails if something did not happen as it must.
pub(crate) async fn play(stage: &Stage, output: Output) -> Result<(), Failure> {
    let show = Show::new(output);
    let places = Plan::find()?;
    let mut operators = Operators::create(&stage.program, &stage.dir)?;
    let plan = Plan::new(places, &operators, stage.module.as_deref())?;

    show.act(format_args!("{OPERATORS} operators publish the zone {ZONE}; each has a node, and a copy of the zone"));
    operators.start_nodes().await?;
    operators.make_keys()?;
    operators.give(1..=OPERATORS, &zone(&[BEFORE]))?;
    operators.start_agents().await?;
    let [one, other] = POOLED;
    show.good(format_args!(
        "the nodes made {one} and {other}: nobody ever holds them, and any {THRESHOLD} of {OPERATORS} nodes sign"
    ));
    show.say("each node asks the agent beside it, which consents to record sets that are in its operator's own copy");

    show.act(format_args!("Knot DNS, which operator {TAKEN_OVER} runs, signs the zone by the PKCS#11 module"));
    let began = Instant::now();
    let knot = plan.start(&operators, &zone(&[BEFORE]))?;
    knot.await_signed(PATIENCE)?;
    show.good(format_args!("signed, {:.1} s after the server's start", began.elapsed().as_secs_f64()));
    let mut scene = Scene { show, operators, knot };
    scene.serves(BEFORE)?;
    scene.verified()?;

    let mut rows = vec![scene.falsify().await?];
    scene.show.act(format_args!("The operators agree: {}", told(AGREED)));
    rows.push(scene.agree("agreed", &[AGREED], OPERATORS).await?);
    scene.show.act(format_args!("Node {VICTIM} is killed (SIGKILL), and the operators agree: {}", told(ADDED)));
    scene.operators.kill_node(VICTIM)?;
    // It was the last one.
    rows.push(scene.agree("one is dead", &[AGREED, ADDED], VICTIM.saturating_sub(1)).await?);
    table(&scene.show, &rows)
}

/// Who takes part, once the zone is signed.
struct Scene {
    show: Show,
    // Ends first: without it nobody asks the nodes.
    knot: NameServer,
    operators: Operators,
}

impl Scene {
    /// Somebody else has what is operator 1's: the name server, the node, and the copy of the zone.
    async fn falsify(&self) -> Result<Row, Failure> {
        let Self { show, operators, knot } = self;
        show.act(format_args!("Operator {TAKEN_OVER} is taken over, name server and all: {}", told(FALSE)));
        let before = self.refusals(OPERATORS)?;
        operators.give([TAKEN_OVER], &zone(&[FALSE]))?;
        show.say(format_args!(
            "operator {TAKEN_OVER}'s copy has it, so that node {TAKEN_OVER} signs; the others' have not"
        ));
        let began = Instant::now();
        if knot.make(FALSE)? {
            return Err(Failure::Failed(format!("what operator {TAKEN_OVER} alone has in its copy was signed")));
        }
        let took = began.elapsed();
        let served = self.serves(BEFORE)?;
        show.good(format_args!("Knot gets no signature, and goes on serving {}", told(BEFORE)));
        show.aside(knot.last_error());
        let refused = self.newly_refused(&before)?;
        if refused != OTHERS {
            return Err(Failure::Failed(format!("nodes {OTHERS:?} should have refused, and {refused:?} did")));
        }
        let objection = format!("{}.{ZONE} A has other data in the zone", FALSE.name);
        for node in OTHERS {
            let shown = operators.last_refusal(node)?;
            if !shown.contains(&objection) || !shown.contains(NAME_SERVER) {
                return Err(Failure::Failed(format!("node {node} does not say who asked, or why it refused: {shown}")));
            }
            show.good(format_args!(
                "node {node} has on record who asked, and why it refused (theta audit show --refused)"
            ));
            // The names of the columns, and the record.
            shown.lines().take(2).for_each(|line| show.aside(line));
        }
        let named = self.named().await?;
        self.verified()?;
        let copies = vec![TAKEN_OVER];
        let (act, change, took_ms) = ("taken over", told(FALSE), ms(took));
        Ok(Row { act, change, copies, refused, named, signed: false, served, took_ms })
    }

    /// Has the name server try until the others name the node that took part all the same; which that is. Of a signature of Ed25519 they see what it did
    /// if it is the signature's coordinator, or asks who that is.
    async fn named(&self) -> Result<Vec<u16>, Failure> {
        let Self { show, operators, knot } = self;
        let deadline = Instant::now() + PATIENCE;
        let culprits = loop {
            let culprits = operators.disputed()?;
            if !culprits.is_empty() {
                break culprits;
            }
            if Instant::now() > deadline {
                return Err(Failure::NoAnswer(format!("nobody names node {TAKEN_OVER}, which took part")));
            }
            sleep(Duration::from_millis(200)).await;
            if knot.make(FALSE)? {
                return Err(Failure::Failed(format!("what operator {TAKEN_OVER} alone has in its copy was signed")));
            }
        };
        for culprit in &culprits {
            let (node, told_by) = (culprit.node, culprit.told_by());
            if node != TAKEN_OVER || !told_by.iter().all(|by| OTHERS.contains(by)) {
                return Err(Failure::Failed(format!("node {TAKEN_OVER} should be named, and it is {culprit:?}")));
            }
            show.good(format_args!("node {node} is named by {} (theta status, theta doctor)", connect::nodes(told_by)));
            // As theta status says it.
            show.aside(format_args!("according to {}, node {node} {}", connect::nodes(told_by), culprit.misbehaviour));
        }
        Ok(vec![TAKEN_OVER])
    }

    /// The last of these changes is in all copies, and is made; so many nodes run, the first ones.
    async fn agree(&self, act: &'static str, changes: &[Change], nodes: u16) -> Result<Row, Failure> {
        let Self { show, operators, knot } = self;
        let change = changes.last().copied().ok_or_else(|| Failure::internal("nothing is to be changed"))?;
        let before = self.refusals(nodes)?;
        operators.give(1..=OPERATORS, &zone(changes))?;
        let deadline = Instant::now() + PATIENCE;
        let took = loop {
            let began = Instant::now();
            if knot.make(change)? {
                break began.elapsed();
            }
            if Instant::now() > deadline {
                return Err(Failure::NoAnswer(format!("what all copies have is not signed: {}", knot.last_error())));
            }
            // On a busy machine a node may have been too slow for Knot.
            sleep(Duration::from_millis(200)).await;
        };
        let served = self.serves(change)?;
        show.good(format_args!("signed and served: {}", told(change)));
        self.verified()?;
        let (copies, refused) = ((1..=OPERATORS).collect(), self.newly_refused(&before)?);
        let (change, named, took_ms) = (told(change), Vec::new(), ms(took));
        Ok(Row { act, change, copies, refused, named, signed: true, served, took_ms })
    }

    /// Makes sure that the server gives this address, with its signature.
    fn serves(&self, Change { name, address, .. }: Change) -> Result<String, Failure> {
        match self.knot.address(name)? {
            Some(served) if served == address => Ok(served),
            served => {
                let served = served.unwrap_or_else(|| "nothing signed".to_owned());
                Err(Failure::Failed(format!("{name}.{ZONE} should be {address}, and the name server says {served}")))
            }
        }
    }

    fn verified(&self) -> Result<(), Failure> {
        self.knot.verify()?;
        self.show.good("ldns-verify-zone: zone is verified and complete");
        Ok(())
    }

    /// How often each of the first nodes has refused so far.
    fn refusals(&self, nodes: u16) -> Result<Vec<(u16, usize)>, Failure> {
        (1..=nodes).map(|node| self.operators.refusals(node).map(|count| (node, count))).collect()
    }

    /// Those of them that have refused something since.
    fn newly_refused(&self, before: &[(u16, usize)]) -> Result<Vec<u16>, Failure> {
        let mut refused = Vec::new();
        for (node, count) in before {
            if self.operators.refusals(*node)? > *count {
                refused.push(*node);
            }
        }
        Ok(refused)
    }
}

/// The zone with these names besides.
fn zone(changes: &[Change]) -> String {
    let lines = changes.iter().map(|Change { name, address, .. }| format!("{name} A {address}\n"));
    RECORDS.to_owned() + &lines.collect::<String>()
}

/// What a change says.
fn told(Change { name, address, .. }: Change) -> String {
    format!("{name}.{ZONE} A {address}")
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
