//! An operator's actions on a group: the product's commands, and changes of policies.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use theta_client::Client;
use theta_statements::Digest;

use super::{Group, PATIENCE, SLOTS, open, run};
use crate::{attack::Trouble, until::until};

/// The longest wait for a policy to be in force, or for slots to be served; nodes check their files every second or two.
const LATEST: Duration = Duration::from_secs(30);

impl Group {
    /// A file beside the group's, for the attacker or for other people of the scenario.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Runs one of the product's commands in the group's directory and returns its standard output.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Result<String, Trouble> {
        run(Command::new(&self.theta).args(arguments).current_dir(&self.dir))
    }

    /// Inserts lines before the rules of all policies, and waits until all running nodes follow them.
    pub(crate) async fn begin_policies_with(&self, lines: &str) -> Result<(), Trouble> {
        self.begin_policies_of(self.numbers(), lines).await
    }

    /// As [`Group::begin_policies_with`], for these nodes alone.
    pub(crate) async fn begin_policies_of(&self, nodes: impl Iterator<Item = u16>, lines: &str) -> Result<(), Trouble> {
        let client = self.client()?;
        for node in nodes {
            let file = self.node_dir(node).join("policy.toml");
            let text = fs::read_to_string(&file)?;
            let (head, rest) = text.split_once("[[rule]]").ok_or_else(|| Trouble::new("a policy without rules"))?;
            let text = format!("{head}{lines}\n[[rule]]{rest}");
            // Renamed into place, so that no node reads half of it.
            let draft = file.with_extension("draft");
            fs::write(&draft, &text)?;
            fs::rename(&draft, &file)?;
            let (id, wanted) = (self.node(node)?.id, Digest::of(text.as_bytes()));
            until(LATEST, || async {
                let another = client.policy(id).await.is_ok_and(|policy| policy.digest != wanted.0[..]);
                let waits = another && self.pid(node).is_ok();
                if waits { Err(Trouble::new(format!("node {node} does not take its new policy"))) } else { Ok(()) }
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until the group signs for this slot of [`SLOTS`]. A restarted node does so once enough peers have confirmed
    /// that its store is current.
    pub(crate) async fn signs_slots(&self, client: &Client, slot: u64) -> Result<(), Trouble> {
        let signed = until(LATEST, || client.sign_for_slot(SLOTS, format!("slot {slot}").into(), slot)).await;
        signed.map(drop).map_err(|error| Trouble::new(format!("the group does not sign for slots: {error}")))
    }

    /// Makes another client. Returns the lines of a policy that name it; a rule for it belongs behind them.
    pub(crate) fn add_client(&self, name: &str) -> Result<String, Trouble> {
        let made = self.tool(&["client", "new", "--name", name, "--group", "group.toml", "--json"])?;
        let made: serde_json::Value = serde_json::from_str(&made).map_err(|error| Trouble::new(error.to_string()))?;
        let lines = made.get("policy").and_then(serde_json::Value::as_str);
        lines.map(str::to_owned).ok_or_else(|| Trouble::new("theta client new printed no lines for policies"))
    }

    /// The client of this name, with its own connections.
    pub(crate) fn client_of(&self, name: &str) -> Result<Client, Trouble> {
        open(&self.dir.join(format!("{name}.client")), PATIENCE)
    }
}
