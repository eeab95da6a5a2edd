//! The check: rules by themselves, then expressions and alerts against a group at work.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use theta::group::plan::{self, Plan};
use theta_cluster::{Cluster, Lifetime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    Arguments, Trouble, expressions,
    prometheus::{Programs, Prometheus},
};

const NODES: u16 = 4;
const THRESHOLD: u16 = 2;
/// How long Prometheus and nodes may take to see what has happened, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) async fn check(arguments: &Arguments) -> Result<(), Trouble> {
    let programs = Programs::find(arguments.prometheus.as_deref());
    let file = |name: &str| arguments.files.join(name);
    for (words, name) in [(["check", "rules"], "alerts.yml"), (["test", "rules"], "alerts.test.yml")] {
        programs.ask(&[&words[..], &[&file(name).to_string_lossy()]].concat())?;
        println!("{name}: promtool {} finds nothing", words.join(" "));
    }
    programs.ask(&["check", "config", &file("prometheus.yml").to_string_lossy()])?;
    println!("prometheus.yml: promtool check config finds nothing");

    let theta = program(arguments)?;
    let home = tempfile::tempdir().map_err(|error| Trouble::Impossible(format!("no temporary folder: {error}")))?;
    let plan = Plan::new(NODES, THRESHOLD, plan::default_keys())?;
    let mut group = Cluster::create(theta.clone(), &home.path().join("group"), &plan, Lifetime::Tied)?;
    group.start_all()?;
    group.listening(Duration::from_secs(60)).await?;
    let rules = std::path::absolute(file("alerts.yml")).map_err(|error| Trouble::Impossible(error.to_string()))?;
    let prometheus = Prometheus::start(programs, &rules, &group.metrics()).await?;
    eventually("every node is scraped and reaches all others", async || {
        Ok(prometheus.values("theta_keys_spare_holders == 2")?.len() == usize::from(NODES))
    })
    .await?;

    work(&theta, &group)?;
    names_exist(&arguments.files, group.metrics().first().copied()).await?;
    answers(&prometheus, &read(&file("dashboard.json"))?).await?;
    losses(&prometheus, &mut group).await
}

fn program(arguments: &Arguments) -> Result<PathBuf, Trouble> {
    let beside = std::env::current_exe().map(|own| own.with_file_name("theta"));
    let theta = arguments.theta.clone().map_or(beside, std::path::absolute);
    let theta = theta.map_err(|error| Trouble::Impossible(error.to_string()))?;
    if theta.is_file() {
        return Ok(theta);
    }
    Err(Trouble::Impossible(format!("there is no {}: build it, or name it with --theta", theta.display())))
}

/// Metrics that a node shows when it has happened for the first time: a lie, a limit reached.
const RARE: [&str; 3] = ["theta_failed_programs_total", "theta_culprits_total", "theta_overloaded_total"];

/// Every metric that rules and dashboard name is one that a node has.
async fn names_exist(files: &Path, node: Option<SocketAddr>) -> Result<(), Trouble> {
    let node = node.ok_or_else(|| Trouble::Impossible("the group has no nodes".to_owned()))?;
    let exposed = expressions::exposed(&scrape(node).await.map_err(|error| Trouble::Impossible(error.to_string()))?);
    for name in ["alerts.yml", "alerts.test.yml", "dashboard.json"] {
        let named = expressions::metrics(&read(&files.join(name))?);
        if let Some(unknown) =
            named.iter().find(|metric| !exposed.contains(*metric) && !RARE.contains(&metric.as_str()))
        {
            return Err(Trouble::Wrong(format!("{name} names {unknown}, which no node has")));
        }
        println!("{name}: nodes have all {} metrics that it names", named.len());
    }
    Ok(())
}

async fn scrape(node: SocketAddr) -> std::io::Result<String> {
    let mut tcp = TcpStream::connect(node).await?;
    tcp.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// A key is made and signs, so that there are ceremonies, stages and commitments to show.
fn work(theta: &Path, group: &Cluster) -> Result<(), Trouble> {
    let run = |words: &[&str]| {
        let mut command = Command::new(theta);
        command.args(words).arg("--client").arg(group.client_dir());
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| Trouble::Impossible(format!("{}: {error}", theta.display())))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Trouble::Impossible(format!("theta {}: {said}", words.join(" "))))
    };
    let mut held = run(&["keys", "create", "watched=frost-ed25519", "--json"])?;
    // A node that the others had not found yet has no share, and lacks it until the next refresh: an alert, as it should be.
    for _ in 0..10 {
        let ended: serde_json::Value =
            serde_json::from_slice(&held).map_err(|error| Trouble::Impossible(format!("theta keys: {error}")))?;
        if ended.pointer("/0/without_share") == Some(&serde_json::json!([])) {
            break;
        }
        held = run(&["keys", "refresh", "watched", "--json"])?;
    }
    for name in ["first", "second", "third"] {
        run(&["coin", name])?;
    }
    let letter = group.client_dir().with_file_name("letter");
    fs::write(&letter, "watched").map_err(|error| Trouble::Impossible(error.to_string()))?;
    let signature = letter.with_extension("signature");
    run(&["sign", &letter.to_string_lossy(), "--key", "watched", "-o", &signature.to_string_lossy()]).map(drop)
}

/// Each panel has something to show while a group works.
async fn answers(prometheus: &Prometheus, dashboard: &str) -> Result<(), Trouble> {
    let expressions = expressions::of_dashboard(dashboard).map_err(Trouble::Wrong)?;
    for (title, expression) in &expressions {
        eventually(&format!("the panel {title:?} shows something: {expression}"), async || {
            Ok(!prometheus.values(expression)?.is_empty())
        })
        .await?;
    }
    println!("dashboard.json: all {} expressions of its panels have values", expressions.len());
    Ok(())
}

/// Nodes die one after the other, and come back.
async fn losses(prometheus: &Prometheus, group: &mut Cluster) -> Result<(), Trouble> {
    let alerts = async |when: &str, expected: &[&str]| {
        let mut seen = Vec::new();
        let found = eventually(when, async || {
            seen = prometheus.alerts()?;
            Ok(seen == expected)
        });
        let found = found.await;
        found.map_err(|_| Trouble::Wrong(format!("{when}: alerts are {seen:?} and should be {expected:?}")))?;
        println!("{when}: {}", if expected.is_empty() { "no alert".to_owned() } else { expected.join(", ") });
        Ok::<(), Trouble>(())
    };
    alerts("all four nodes run", &[]).await?;
    let one = ["ThetaNodeDown", "ThetaPeerDisconnected"];
    group.kill(4)?;
    alerts("one of four is killed", &one).await?;
    group.kill(3)?;
    alerts("two of four are killed", &["ThetaNoSpareHolder", one[0], one[1]]).await?;
    group.kill(2)?;
    // Whoever is left alone has other cares than who is disconnected.
    alerts("three of four are killed", &["ThetaKeysStopped", one[0]]).await?;
    for node in 2..=NODES {
        group.start(node)?;
    }
    alerts("all are started again", &[]).await
}

/// Asks again and again until it is so.
async fn eventually(what: &str, mut so: impl AsyncFnMut() -> Result<bool, Trouble>) -> Result<(), Trouble> {
    let deadline = Instant::now() + PATIENCE;
    while !so().await? {
        if Instant::now() > deadline {
            return Err(Trouble::Wrong(format!("{} s are over, and it is not so: {what}", PATIENCE.as_secs())));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Trouble> {
    fs::read_to_string(path).map_err(|error| Trouble::Impossible(format!("{}: {error}", path.display())))
}
