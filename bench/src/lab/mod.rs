//! `theta-bench capacity|steady|payload|network` and `report`: the evaluation of the literature, from scenarios to a report.

mod child;
mod director;
mod figures;
mod folder;
mod ladder;
mod measure;
mod protocol;
mod report;
mod row;
mod scenario;
mod work;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;
use theta::{
    exit::Failure,
    output::{self, Output, Table},
};

use self::measure::STAGES;
pub(crate) use self::measure::{run as measure, usage};
use self::{
    child::Ending,
    folder::Folder,
    row::{Measure, Row},
    scenario::{BUILT_IN, Scenario},
};
use crate::machine::Machine;

const MORE: &str = "\
A scenario is a TOML file; those that come with the program, which are good to start from, are in bench/scenarios/, and --list names them. \
Results are a folder: results.csv with a line for each point and all its conditions, nodes.csv, stages.csv, and report.html, which needs nothing \
else. After Ctrl-C it has what was measured until then, and --resume goes on.";

/// Options of the commands that measure groups.
#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct LabArgs {
    /// What to measure: the name of a scenario that comes with the program, or a TOML file
    #[arg(long, value_name = "FILE|NAME")]
    scenario: Option<String>,
    /// Where to write: a new folder [default: theta-SCENARIO-DATE here]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the scenario of this folder: what it has is not measured again
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "out"])]
    resume: Option<PathBuf>,
    /// List the scenarios, and measure nothing
    #[arg(long, conflicts_with_all = ["scenario", "out", "resume"])]
    list: bool,
}

/// Options of `theta-bench report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A folder of results
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// The result in JSON.
#[derive(Serialize)]
struct Results<'a> {
    folder: String,
    report: String,
    points: &'a [Row],
}

/// `theta-bench capacity` and its like.
fn run(measure: Measure, args: &LabArgs, output: Output) -> Result<(), Failure> {
    if args.list {
        return list(measure, output);
    }
    let (scenario, mut folder) = open(measure, args)?;
    if cfg!(debug_assertions) {
        output::note("this is a debug build: its figures mean nothing");
    }
    let ending = Ending::watch()?;
    let before = folder.rows.len();
    let measured = director::run(&scenario, &mut folder, &ending);
    if folder.rows.is_empty() {
        return measured;
    }
    let page = report::page(&folder, &scenario);
    let path = folder.write_report(&page)?.display().to_string();
    if let Err(failure) = measured {
        let (count, dir, name) = (folder.rows.len(), folder.path().display(), measure.name());
        output::note(format_args!("{count} points are in {dir}: go on with theta-bench {name} --resume {dir}"));
        return Err(failure);
    }
    let results = Results { folder: folder.path().display().to_string(), report: path.clone(), points: &folder.rows };
    output.result(&results, |out| {
        report::write_tables(&folder, &scenario, out)?;
        let new = folder.rows.len().saturating_sub(before);
        writeln!(out, "\n{} points, {new} of them new; all of them and their plots in {path}", folder.rows.len())
    })
}

/// `theta-bench capacity`.
pub(crate) fn capacity(args: &LabArgs, output: Output) -> Result<(), Failure> {
    run(Measure::Capacity, args, output)
}

/// `theta-bench steady`.
pub(crate) fn steady(args: &LabArgs, output: Output) -> Result<(), Failure> {
    run(Measure::Steady, args, output)
}

/// `theta-bench payload`.
pub(crate) fn payload(args: &LabArgs, output: Output) -> Result<(), Failure> {
    run(Measure::Payload, args, output)
}

/// `theta-bench network`.
pub(crate) fn network(args: &LabArgs, output: Output) -> Result<(), Failure> {
    run(Measure::Network, args, output)
}

/// `theta-bench report`: makes the report again.
pub(crate) fn report(args: &ReportArgs, output: Output) -> Result<(), Failure> {
    let scenario = Folder::scenario(&args.dir)?;
    let folder = Folder::open(&args.dir)?;
    if folder.rows.is_empty() {
        return Err(Failure::Usage(format!("{}: nothing has been measured yet", args.dir.display())));
    }
    let path = folder.write_report(&report::page(&folder, &scenario))?.display().to_string();
    let results = Results { folder: folder.path().display().to_string(), report: path.clone(), points: &folder.rows };
    output.result(&results, |out| {
        report::write_tables(&folder, &scenario, out)?;
        writeln!(out, "\n{} points; all of them and their plots in {path}", folder.rows.len())
    })
}

fn open(measure: Measure, args: &LabArgs) -> Result<(Scenario, Folder), Failure> {
    let fits = |scenario: Scenario| {
        if scenario.measure == measure {
            return Ok(scenario);
        }
        let right = scenario.measure.name();
        Err(Failure::Usage(format!(
            "the scenario {} is for theta-bench {right}, not {}",
            scenario.name,
            measure.name()
        )))
    };
    if let Some(dir) = &args.resume {
        let (folder, scenario) = Folder::resume(dir)?;
        let machine = Machine::look();
        if folder.rows.iter().any(|row| row.commit != machine.commit() || row.cpu != machine.cpu()) {
            output::note(
                "what is in the folder was measured with another commit or on another machine: the columns say which",
            );
        }
        return Ok((fits(scenario)?, folder));
    }
    let usual = match measure {
        Measure::Capacity => "capacity-7",
        Measure::Steady => "steady-7",
        Measure::Payload => "payload-7",
        Measure::Network => "ping",
    };
    let scenario = fits(Scenario::load(args.scenario.as_deref().unwrap_or(usual))?)?;
    let out = args.out.clone().unwrap_or_else(|| {
        let date = Machine::look().date.trim_end_matches(" UTC").replace(' ', "-").replace(':', "");
        PathBuf::from(format!("theta-{}-{date}", scenario.name))
    });
    let folder = Folder::create(&out, &scenario)?;
    Ok((scenario, folder))
}

/// `--list`.
fn list(measure: Measure, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Listed {
        scenarios: Vec<&'static str>,
    }
    let names = scenario::names_of(measure);
    let loaded = BUILT_IN.iter().map(|(name, _)| Scenario::load(name)).collect::<Result<Vec<_>, _>>()?;
    let describe = |out: &mut dyn Write| -> io::Result<()> {
        let mut table = Table::new(&["scenario", "what"], &[]);
        for scenario in loaded.iter().filter(|scenario| names.contains(scenario.name.as_str())) {
            table.row([scenario.name.clone(), scenario.description.clone()]);
        }
        table.write(out)
    };
    output.result(&Listed { scenarios: names.iter().copied().collect() }, describe)
}
