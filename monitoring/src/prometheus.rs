//! A Prometheus of one's own on a free port, asked by `promtool`.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::Trouble;

/// The two programs.
pub(crate) struct Programs {
    prometheus: PathBuf,
    promtool: PathBuf,
}

impl Programs {
    /// Those of a folder, or of PATH.
    pub(crate) fn find(folder: Option<&Path>) -> Self {
        let find = |name: &str| folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        Self { prometheus: find("prometheus"), promtool: find("promtool") }
    }

    /// What `promtool` prints.
    ///
    /// # Errors
    /// [`Trouble::Wrong`] with what it says if it is not content; [`Trouble::Impossible`] if it does not run.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<String, Trouble> {
        let output = Command::new(&self.promtool).args(words).stdin(Stdio::null()).output();
        let output = output.map_err(|error| Trouble::Impossible(format!("{}: {error}", self.promtool.display())))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        Err(Trouble::Wrong(format!("promtool {}:\n{said}{}", words.join(" "), String::from_utf8_lossy(&output.stderr))))
    }
}

/// A running Prometheus. Dropping it ends it, and removes what it stored.
pub(crate) struct Prometheus {
    programs: Programs,
    address: SocketAddr,
    child: Child,
    home: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes the targets and evaluates the rules each second.
    pub(crate) async fn start(programs: Programs, rules: &Path, targets: &[SocketAddr]) -> Result<Self, Trouble> {
        let failed = |what: &str, error: std::io::Error| Trouble::Impossible(format!("{what}: {error}"));
        let home = tempfile::Builder::new().prefix("theta-monitoring-").tempdir();
        let home = home.map_err(|error| failed("no temporary folder", error))?;
        let config = home.path().join("prometheus.yml");
        fs::write(&config, configuration(rules, targets)).map_err(|error| failed("prometheus.yml", error))?;
        // The port is free now; whoever takes it before Prometheus does makes this check fail, not pass.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| failed("no free port", error))?;
        let address = listener.local_addr().map_err(|error| failed("no free port", error))?;
        drop(listener);
        let log = fs::File::create(home.path().join("log")).map_err(|error| failed("no log", error))?;
        let child = Command::new(&programs.prometheus)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", home.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| failed(&programs.prometheus.display().to_string(), error))?;
        let mut started = Self { programs, address, child, home };
        started.ready().await?;
        Ok(started)
    }

    async fn ready(&mut self) -> Result<(), Trouble> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.values("vector(1)").is_err() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or("it left no word").to_owned();
                return Err(Trouble::Impossible(format!("Prometheus does not come up: {last}")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// The series of an expression now, as `promtool` prints them: `name{labels} => value @[time]`.
    pub(crate) fn values(&self, expression: &str) -> Result<Vec<String>, Trouble> {
        let said = self.programs.ask(&["query", "instant", &format!("http://{}", self.address), expression])?;
        Ok(said.lines().filter(|line| line.contains(" => ")).map(str::to_owned).collect())
    }

    /// The names of the alerts that are pending or firing.
    pub(crate) fn alerts(&self) -> Result<Vec<String>, Trouble> {
        let lines = self.values("count by (alertname) (ALERTS)")?;
        let name = |line: &String| Some(line.split_once("alertname=\"")?.1.split_once('"')?.0.to_owned());
        let mut names: Vec<String> = lines.iter().filter_map(name).collect();
        names.sort();
        Ok(names)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(rules: &Path, targets: &[SocketAddr]) -> String {
    let targets: Vec<String> = targets.iter().map(|target| format!("{:?}", target.to_string())).collect();
    format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{:?}]\nscrape_configs:\n  \
         - job_name: thetacrypt\n    static_configs: [{{ targets: [{}], labels: {{ group: checked }} }}]\n",
        rules.display().to_string(),
        targets.join(", ")
    )
}
