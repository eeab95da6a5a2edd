//! `theta-attack`: attacks real groups of node processes in one way after another, while honest clients go on.
//!
//! Each attack has a file under `attacks/` and tests one promise of SECURITY.md. A run gives each attack a new group,
//! measures what the attack costs the group, and ends with a table. Everything listens on loopback, every load is bounded
//! and ends by itself, and only processes started here are killed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod ask;
mod attack;
mod attacks;
mod custody;
mod door;
mod group;
mod honest;
mod member;
mod process;
mod report;
mod until;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use clap::Parser;
use tokio::task::JoinSet;

use crate::{
    attack::{Attack, Field, Trouble},
    group::Group,
    honest::Honest,
    report::{Report, Row},
};

/// Attacks groups of nodes on this machine and prints which promises were kept.
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 all promises were kept, 1 one was broken, 2 an attack could not be committed.")]
struct Arguments {
    /// Smaller attacks, two at a time: two or three minutes for all; those that left clients waiting once more, alone
    #[arg(long)]
    short: bool,
    /// Commits only attacks whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
    /// Lists the attacks
    #[arg(long)]
    list: bool,
    /// The program to attack [default: theta beside this program]
    #[arg(long, value_name = "FILE")]
    theta: Option<PathBuf>,
    /// Keeps the groups' directories, with the nodes' logs, in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Arguments {
    /// Tells the result of an attack at once, unless only a document is wanted.
    fn tell(&self, attack: &Attack, row: &Row) {
        if !self.json {
            eprintln!("== {}: {}\n   {}", attack.name, attack.promise, row.in_a_line());
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let chosen: Vec<Attack> = attacks::all()
        .into_iter()
        .filter(|attack| arguments.only.is_empty() || arguments.only.iter().any(|part| attack.name.contains(part)))
        .filter(|attack| !arguments.short || attack.short || !arguments.only.is_empty())
        .collect();
    if arguments.list {
        chosen.iter().for_each(|attack| println!("{:<28} {:<8} {}", attack.name, attack.who, attack.promise));
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        eprintln!("error: no attack is called so: see --list");
        return ExitCode::from(2);
    }
    let committed = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Trouble::from)
        .and_then(|runtime| runtime.block_on(commit_all(&arguments, chosen)));
    match committed {
        Ok(report) => {
            println!("{}", if arguments.json { report.json() } else { report.table() });
            if report.all_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(trouble) => {
            eprintln!("error: {trouble}");
            ExitCode::from(2)
        }
    }
}

async fn commit_all(arguments: &Arguments, chosen: Vec<Attack>) -> Result<Report, Trouble> {
    let theta = match &arguments.theta {
        // Some commands run in the groups' directories, so the path must be absolute.
        Some(theta) => std::path::absolute(theta)?,
        None => std::env::current_exe()?.with_file_name("theta"),
    };
    if !theta.is_file() {
        return Err(Trouble::new(format!("there is no {}: build it, or name it with --theta", theta.display())));
    }
    // Each has a group of its own. What is measured of one is not to be disturbed by another, unless it is short.
    let at_once = if arguments.short { 2 } else { 1 };
    let mut waiting = chosen.into_iter().enumerate();
    let (mut running, mut rows, mut doubtful) = (JoinSet::new(), BTreeMap::new(), Vec::new());
    let scene = || Scene { theta: theta.clone(), keep: arguments.keep.clone(), short: arguments.short };
    loop {
        while running.len() < at_once {
            let Some((place, attack)) = waiting.next() else { break };
            let scene = scene();
            running.spawn(async move { (commit_one(&attack, &scene).await, place, attack) });
        }
        let Some(committed) = running.join_next().await else { break };
        let (committed, place, attack) = committed.map_err(|_| Trouble::new("an attack panicked".to_owned()))?;
        match committed {
            Ok(row) => {
                arguments.tell(&attack, &row);
                doubtful.extend(row.doubt().map(|doubt| (place, attack, doubt)));
                rows.insert(place, row);
            }
            Err(trouble) => doubtful.push((place, attack, trouble.to_string())),
        }
    }
    if arguments.short && doubtful.len() <= MOST_DOUBTFUL {
        for (place, attack, doubt) in doubtful {
            let row = commit_one(&attack, &scene()).await?.after(&doubt);
            arguments.tell(&attack, &row);
            rows.insert(place, row);
        }
    } else if let Some((.., trouble)) = doubtful.into_iter().find(|(place, ..)| !rows.contains_key(place)) {
        return Err(Trouble::new(trouble));
    }
    Ok(rows.into_values().collect())
}

/// How many attacks of a run are committed once more because the machine may have been too busy for two at once.
const MOST_DOUBTFUL: usize = 2;

/// What is attacked, and how.
struct Scene {
    theta: PathBuf,
    keep: Option<PathBuf>,
    short: bool,
}

async fn commit_one(attack: &Attack, scene: &Scene) -> Result<Row, Trouble> {
    let group = Group::create(&scene.theta, scene.keep.as_deref(), attack.name, attack.shape).await?;
    let mut field = Field::new(group, scene.short);
    let honest = Honest::start(field.group())?;
    let committed = report::commit(attack, &mut field, honest).await;
    committed.map_err(|trouble| Trouble::new(format!("{}: {trouble}", attack.name)))
}
