//! What an operator does with a group: the product's commands, changes of the policies.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use theta_client::{Client, ClientOptions};
use theta_statements::Digest;

use super::{Group, NODES, PATIENCE, run};
use crate::attack::Trouble;

/// Until a policy is in force, or slots are served: nodes look at their files every second or two.
const LATEST: Duration = Duration::from_secs(30);

impl Group {
    /// A file of the attacker's, or of the people of the story, beside the group's.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Runs one of the product's commands in the group's directory; its standard output.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Result<String, Trouble> {
        run(Command::new(&self.theta).args(arguments).current_dir(&self.dir))
    }

    /// Puts these lines before the rules of all policies, and waits until all running nodes follow them.
    pub(crate) async fn begin_policies_with(&self, lines: &str) -> Result<(), Trouble> {
        let client = self.client()?;
        for node in 1..=NODES {
            let file = self.node_dir(node).join("policy.toml");
            let text = fs::read_to_string(&file)?;
            let (head, rest) = text.split_once("[[rule]]").ok_or_else(|| Trouble::new("a policy without rules"))?;
            let text = format!("{head}{lines}\n[[rule]]{rest}");
            // At once, or a node would read half of it.
            let draft = file.with_extension("draft");
            fs::write(&draft, &text)?;
            fs::rename(&draft, &file)?;
            let (deadline, wanted) = (Instant::now() + LATEST, Digest::of(text.as_bytes()));
            let id = self.node(node)?.id;
            while self.pid(node).is_ok() && client.policy(id).await.is_ok_and(|policy| policy.digest != wanted.0[..]) {
                if Instant::now() > deadline {
                    return Err(Trouble::new(format!("node {node} does not take its new policy")));
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// Waits until the group signs for slots from `first` on of this key: a node that was started does so when enough peers have
    /// said that its store is what it was. Returns the slot that was used.
    pub(crate) async fn signs_slots(&self, client: &Client, key: &str, first: u64) -> Result<u64, Trouble> {
        let deadline = Instant::now() + LATEST;
        loop {
            match client.sign_for_slot(key, format!("slot {first}").into(), first).await {
                Ok(_) => return Ok(first),
                Err(error) if Instant::now() > deadline => {
                    return Err(Trouble::new(format!("the group does not sign for slots: {error}")));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// Makes another client; the lines of policies that let it in, to which a rule for it belongs.
    pub(crate) fn add_client(&self, name: &str) -> Result<String, Trouble> {
        let made = self.tool(&["client", "new", "--name", name, "--group", "group.toml", "--json"])?;
        let made: serde_json::Value = serde_json::from_str(&made).map_err(|error| Trouble::new(error.to_string()))?;
        let lines = made.get("policy").and_then(serde_json::Value::as_str);
        lines.map(str::to_owned).ok_or_else(|| Trouble::new("theta client new printed no lines for policies"))
    }

    /// A client of this directory, with connections of its own.
    pub(crate) fn client_of(&self, name: &str) -> Result<Client, Trouble> {
        open(&self.dir.join(name))
    }
}

/// A client directory's client, with connections of its own.
pub(super) fn open(folder: &Path) -> Result<Client, Trouble> {
    let options = ClientOptions { timeout: PATIENCE, connect_timeout: PATIENCE, ..ClientOptions::default() };
    Ok(Client::open_with(folder, options)?)
}
