//! The story, act by act.

use std::{path::PathBuf, time::Instant};

use theta::{exit::Failure, output::Output};
use theta_cluster::Show;

use crate::{
    member::{Member, Origin},
    readers::{self, Readers, shown},
    registries::{OBJECTS, REGISTRIES, Registries, THRESHOLD},
    show::{Row, table},
};

/// The registry that runs the issuer, and is taken over.
const TAKEN_OVER: u16 = 1;
/// The node that is killed: with the one that was taken over, as many as may fail.
const VICTIM: u16 = 5;
/// What the honest issuer has asked for, and the one that was taken over.
const STATE: &str = "issued";
const OTHER_STATE: &str = "issued-otherwise";

const FIRST: Origin = Origin { network: 64_496, prefix: "192.0.2.0/24" };
const FALSE: Origin = Origin { network: 666, prefix: "192.0.2.0/24" };
const SECOND: Origin = Origin { network: 64_500, prefix: "192.0.2.0/25" };

/// Where the story takes place.
pub(crate) struct Stage {
    /// This program.
    pub(crate) program: PathBuf,
    /// A directory that does not exist yet.
    pub(crate) dir: PathBuf,
}

/// Plays all acts; fails if something did not happen as it must.
pub(crate) async fn play(stage: &Stage, output: Output) -> Result<(), Failure> {
    let show = Show::new(output);
    let places = readers::find()?;
    let port = readers::port()?;

    show.act(format_args!("{REGISTRIES} registries run one RPKI; each has a node, data of its own, and an agent"));
    let mut registries = Registries::create(&stage.program, &stage.dir, OBJECTS)?;
    registries.start_nodes().await?;
    let member = Member::new()?;
    registries.write_data(&member, port)?;
    registries.start_agents().await?;
    let readers = Readers::start(places, registries.dir(), &registries.published(), port)?;
    show.good(format_args!(
        "RSA keys of the trust anchor, of an authority and of objects: any {THRESHOLD} of {REGISTRIES} nodes sign, and no machine has one"
    ));
    show.say("each node asks the agent beside it, which looks at the whole object, at its own data, and at what members have signed");
    let mut scene = Scene { show, readers, registries, member };

    let mut rows = vec![scene.grant("granted", FIRST, &[FIRST]).await?, scene.withdraw_alone().await?];
    rows.push(scene.forge().await?);
    scene.show.act(format_args!(
        "Node {VICTIM} is killed (SIGKILL), registry {TAKEN_OVER} goes on refusing, and the member grants {}",
        shown(SECOND)
    ));
    scene.registries.kill_node(VICTIM)?;
    rows.push(scene.grant("one is dead", SECOND, &[FIRST, SECOND]).await?);
    rows.push(scene.withdraw().await?);
    table(&scene.show, &rows)
}

/// Who takes part.
struct Scene {
    show: Show,
    readers: Readers,
    registries: Registries,
    member: Member,
}

impl Scene {
    /// The member grants an origin, which all registries hear of, and it is published.
    async fn grant(&mut self, act: &'static str, origin: Origin, told: &[Origin]) -> Result<Row, Failure> {
        if act == "granted" {
            self.show.act(format_args!("A member signs that {} may be announced", shown(origin)));
        }
        let statement = self.member.state(origin, true)?;
        self.registries.give(1..=REGISTRIES, &format!("grant-{}", origin.network), &statement).await?;
        self.publish(act, shown(origin), told)
    }

    /// The member withdraws the first origin.
    async fn withdraw(&mut self) -> Result<Row, Failure> {
        self.show.act(format_args!("The member withdraws {}", shown(FIRST)));
        let statement = self.member.state(FIRST, false)?;
        self.registries.give(1..=REGISTRIES, "withdrawal", &statement).await?;
        self.publish("withdrawn", format!("without {}", shown(FIRST)), &[SECOND])
    }

    /// Another registry's issuer has it signed: registry 2's.
    fn publish(&self, act: &'static str, change: String, told: &[Origin]) -> Result<Row, Failure> {
        let began = Instant::now();
        let report = self.registries.issue(2, STATE)?;
        let took = began.elapsed();
        if let Some(failure) = report.failures.first() {
            return Err(Failure::Failed(format!("{} is not signed: {}", failure.file, failure.reason)));
        }
        self.registries.publish()?;
        let told = self.told(told)?;
        self.show.good(format_args!("signed and published; rpki-client validates {}", told.join(", ")));
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Ok(Row { act, change, refused: Vec::new(), signed: true, told, took_ms })
    }

    /// Somebody else has what is registry 1's, and would have the route gone: the data that it shows its issuer have no statement.
    async fn withdraw_alone(&mut self) -> Result<Row, Failure> {
        self.show.act(format_args!("Registry {TAKEN_OVER} is taken over, and would have {} gone", shown(FIRST)));
        self.registries.forget(TAKEN_OVER).await?;
        self.refused("would withdraw", format!("without {}", shown(FIRST)), "is missing, and acme has not withdrawn it")
    }

    /// Or another network in its place: in that registry's data the member has another key, which states that.
    async fn forge(&mut self) -> Result<Row, Failure> {
        self.show.act(format_args!("Registry {TAKEN_OVER} would have {} in its place", shown(FALSE)));
        let forger = Member::new()?;
        self.registries.replace_member(TAKEN_OVER, &self.member, &forger)?;
        self.registries.give([TAKEN_OVER], "forged", &forger.state(FALSE, true)?).await?;
        self.refused("would forge", shown(FALSE), "is authorised by no member's statement")
    }

    /// What the registry that was taken over wants is not signed, and what was published stays.
    fn refused(&self, act: &'static str, change: String, objection: &str) -> Result<Row, Failure> {
        let Self { show, registries, .. } = self;
        let before = self.refusals()?;
        registries.copy_state(STATE, OTHER_STATE)?;
        let began = Instant::now();
        let report = registries.issue(TAKEN_OVER, OTHER_STATE)?;
        let took = began.elapsed();
        if report.failures.is_empty() {
            return Err(Failure::Failed(format!("what registry {TAKEN_OVER} alone wants was signed: {change}")));
        }
        registries.publish()?;
        let told = self.told(&[FIRST])?;
        show.good(format_args!("it gets no signature; rpki-client validates {} as before", told.join(", ")));
        let mut refused = Vec::new();
        for (node, count) in before {
            if registries.refusals(node)? > count {
                refused.push(node);
            }
        }
        for node in TAKEN_OVER + 1..=REGISTRIES {
            let shown = registries.last_refusal(node)?;
            if !refused.contains(&node) || !shown.contains(objection) {
                return Err(Failure::Failed(format!("node {node} does not say why it refused: {shown}")));
            }
        }
        show.good("every other registry's node has on record why it refused (theta audit show --refused)");
        registries.last_refusal(2)?.lines().take(2).for_each(|line| show.aside(line));
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Ok(Row { act, change, refused, signed: false, told, took_ms })
    }

    /// Makes sure that a router is told this, and nothing else.
    fn told(&self, expected: &[Origin]) -> Result<Vec<String>, Failure> {
        let told = self.readers.told()?;
        let mut expected: Vec<String> = expected.iter().map(|origin| shown(*origin)).collect();
        expected.sort();
        if told == expected {
            return Ok(told);
        }
        Err(Failure::Failed(format!("a router would be told {told:?}, and should be {expected:?}")))
    }

    /// How often each node has refused so far.
    fn refusals(&self) -> Result<Vec<(u16, usize)>, Failure> {
        (1..=REGISTRIES).map(|node| self.registries.refusals(node).map(|count| (node, count))).collect()
    }
}
