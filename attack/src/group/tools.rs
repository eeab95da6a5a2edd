//! What an operator does with a group: the product's commands, changes of the policies.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use theta_client::{Client, ClientOptions};
use theta_statements::Digest;

use super::{Group, PATIENCE, SLOTS, run};
use crate::{attack::Trouble, until::until};

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
        self.begin_policies_of(self.numbers(), lines).await
    }

    /// The same at these nodes alone.
    pub(crate) async fn begin_policies_of(&self, nodes: impl Iterator<Item = u16>, lines: &str) -> Result<(), Trouble> {
        let client = self.client()?;
        for node in nodes {
            let file = self.node_dir(node).join("policy.toml");
            let text = fs::read_to_string(&file)?;
            let (head, rest) = text.split_once("[[rule]]").ok_or_else(|| Trouble::new("a policy without rules"))?;
            let text = format!("{head}{lines}\n[[rule]]{rest}");
            // At once, or a node would read half of it.
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

    /// Waits until the group signs for this slot of [`SLOTS`]: a node that was started does so when enough peers have said that its
    /// store is what it was.
    pub(crate) async fn signs_slots(&self, client: &Client, slot: u64) -> Result<(), Trouble> {
        let signed = until(LATEST, || client.sign_for_slot(SLOTS, format!("slot {slot}").into(), slot)).await;
        signed.map(drop).map_err(|error| Trouble::new(format!("the group does not sign for slots: {error}")))
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
